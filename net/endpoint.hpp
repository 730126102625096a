// An IPv4 address with a port.
#pragma once

#include <compare>
#include <cstdint>

namespace petacq::net {

/// In host byte order.
struct Endpoint {
    std::uint32_t address = 0;
    std::uint16_t port = 0;

    auto operator<=>(const Endpoint&) const = default;
};

}  // namespace petacq::net

// IPv4 addresses and ports.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace petacq::net {

/// In host byte order.
struct Endpoint {
    std::uint32_t address = 0;
    std::uint16_t port = 0;

    auto operator<=>(const Endpoint&) const = default;
};

/// "192.168.1.10:9601"
std::string to_text(Endpoint endpoint);

/// An IPv4 address in host byte order from dotted text. Throws std::runtime_error, whose message starts with
/// `what`: the purpose of the address.
std::uint32_t parse_address(const std::string& text, const std::string& what);

}  // namespace petacq::net

// Which process holds a port, from /proc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace petacq::daemon {

enum class Transport : std::uint8_t { udp, tcp };

struct PortHolder {
    std::string user;          ///< name, or number if it has none
    std::int64_t process = 0;  ///< 0: of another user, whose processes this one may not examine
    std::string program;       ///< name of the process; "" if unknown

    /// "petacqd (process 123 of petacq)"
    [[nodiscard]] std::string text() const;
};

/// Who holds that port of any local address; for TCP only sockets that listen count. If several processes
/// do, a petacqd comes first.
std::optional<PortHolder> port_holder(Transport transport, std::uint16_t port);

}  // namespace petacq::daemon

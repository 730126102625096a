// Opens and queries the UDP socket of a receiver. For net/ and for petacqd --check.
#pragma once

#include <boost/asio/ip/udp.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "net/receive/receiver.hpp"

namespace petacq::net {

/// The kernel charges at least this much memory for a message in addition to its payload.
inline constexpr std::size_t min_overhead = 256;

/// The address cannot be bound.
struct BindError : std::runtime_error {
    BindError(const std::string& what, std::error_code why)
        : std::runtime_error(what + ": " + why.message()), code(why) {}
    std::error_code code;
};
/// A multicast group cannot be joined.
struct JoinError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Memory of a socket's receive buffer, as the kernel counts it, in bytes; and the datagrams it has dropped.
struct SocketMemory {
    std::uint32_t queued = 0;
    std::uint32_t capacity = 0;
    std::uint32_t drops = 0;
};
SocketMemory memory_of(int fd);

/// Asks for a receive buffer of that size: with CAP_NET_ADMIN beyond net.core.rmem_max. Returns what the
/// kernel has granted. `or_less`: take what there is, even if that is less than before.
std::size_t request_receive_buffer(int fd, std::size_t bytes, bool or_less);

/// The bound and configured socket of a receiver.
struct ReceiveSocket {
    /// Throws BindError, JoinError, std::invalid_argument if an inherited socket does not match the options,
    /// std::runtime_error for the rest.
    ReceiveSocket(boost::asio::io_context& io, const ReceiverOptions& options);

    [[nodiscard]] Endpoint local();

    /// Datagrams that the kernel has dropped since the socket was created, modulo 2^32. With GRO it counts
    /// coalesced datagrams as one.
    [[nodiscard]] std::uint32_t kernel_drops();
    /// Memory that the kernel charges for the queued datagrams: more than their payload.
    [[nodiscard]] std::size_t queued_bytes();
    /// Discards the datagrams that are queued now, and perhaps some that arrive meanwhile. Returns in bounded
    /// time even if a sender never pauses. Returns the number of datagrams.
    std::uint64_t discard_queued();

    boost::asio::ip::udp::socket socket;
    std::uint16_t port = 0;
    std::size_t buffer_bytes = 0;  ///< granted
    bool gro = false;              ///< granted
    std::vector<std::string> warnings;
    Memberships groups;

  private:
    void open(const ReceiverOptions& options);
    void adopt(const ReceiverOptions& options);
    void grow_buffer(const ReceiverOptions& options);
    void join_groups(const ReceiverOptions& options);
};

}  // namespace petacq::net

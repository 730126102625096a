// Opening and asking UDP sockets: what is done once, with errors an operator can act on. Internal to net/.
#pragma once

#include <boost/asio/ip/udp.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "net/receiver.hpp"

namespace petacq::net {

/// An IPv4 address from text. Throws std::runtime_error, saying what it was for.
boost::asio::ip::address_v4 parse_ipv4(const std::string& text, const std::string& what);

/// The kernel charges at least this much for a message beside its payload.
inline constexpr std::size_t least_overhead = 256;

/// The bound and configured socket of a receiver.
struct ReceiveSocket {
    ReceiveSocket(boost::asio::io_context& io, const ReceiverOptions& options);

    /// Datagrams that the kernel dropped since the socket was made, modulo 2^32. With GRO the kernel counts
    /// coalesced datagrams as one.
    [[nodiscard]] std::uint32_t kernel_drops();
    /// Memory of the queued datagrams, as the kernel charges it: more than their payload.
    [[nodiscard]] std::size_t queued_bytes();
    /// Takes out and forgets what is queued now, and perhaps some of what comes meanwhile; a sender that
    /// never pauses does not keep us here. Returns the number of datagrams.
    std::uint64_t discard_queued();

    boost::asio::ip::udp::socket socket;
    std::uint16_t port = 0;
    std::size_t buffer_bytes = 0;  ///< granted
    bool gro = false;              ///< granted
    std::vector<std::string> warnings;

  private:
    void open(const boost::asio::ip::udp::endpoint& endpoint, const ReceiverOptions& options);
    void adopt(const boost::asio::ip::udp::endpoint& endpoint, const ReceiverOptions& options);
    void grow_buffer(const ReceiverOptions& options);
    void join_group(const ReceiverOptions& options);
};

}  // namespace petacq::net

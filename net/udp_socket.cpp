#include "net/udp_socket.hpp"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <boost/asio/ip/multicast.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <stdexcept>
#include <system_error>

#include "net/intake.hpp"

namespace petacq::net {

namespace asio = boost::asio;
using asio::ip::udp;

namespace {

bool set_option(int fd, int level, int name, int value) {
    return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

/// The value of a socket option; -1 if `fd` is not a socket.
int option_of(int fd, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

std::string reason() {
    return std::generic_category().message(errno);
}

std::array<std::uint32_t, SK_MEMINFO_VARS> memory_info(int fd) {
    std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
    socklen_t size = sizeof info;
    getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info.data(), &size);
    return info;
}

}  // namespace

ReceiveSocket::ReceiveSocket(asio::io_context& io, const ReceiverOptions& options) : socket(io) {
    const std::string name = options.address + ":" + std::to_string(options.port);
    const std::string what = "cannot receive on " + name;
    const udp::endpoint endpoint(asio::ip::address_v4(parse_address(options.address, what)), options.port);
    try {
        if (options.descriptor >= 0) {
            adopt(endpoint, options);
        } else {
            open(endpoint, options);
        }
        if (!options.multicast_group.empty()) join_group(options);
        if (!set_option(socket.native_handle(), SOL_SOCKET, SO_TIMESTAMPNS, 1))
            throw std::runtime_error("SO_TIMESTAMPNS: " + reason());
        socket.non_blocking(true);
        port = socket.local_endpoint().port();
    } catch (const boost::system::system_error& e) {
        throw std::runtime_error(what + ": " + e.code().message());
    } catch (const std::invalid_argument& e) {
        throw std::invalid_argument(what + ": " + e.what());
    } catch (const std::runtime_error& e) {
        throw std::runtime_error(what + ": " + e.what());
    }
}

void ReceiveSocket::open(const udp::endpoint& endpoint, const ReceiverOptions& options) {
    socket.open(udp::v4());
    if (options.reuse_port && !set_option(socket.native_handle(), SOL_SOCKET, SO_REUSEPORT, 1)) {
        throw std::runtime_error("SO_REUSEPORT: " + reason());
    }
    grow_buffer(options);  // before bind: nothing is queued under the small limit
    gro = options.gro && set_option(socket.native_handle(), IPPROTO_UDP, UDP_GRO, 1);
    if (options.gro && !gro) {
        warnings.push_back(options.address + ":" + std::to_string(options.port) + ": no UDP_GRO (" +
                           reason() + "); continuing without it");
    }
    socket.bind(endpoint);
}

void ReceiveSocket::adopt(const udp::endpoint& endpoint, const ReceiverOptions& options) {
    const int fd = options.descriptor;
    const auto refuse = [](const std::string& why) {
        throw std::invalid_argument("the inherited socket " + why);
    };
    if (option_of(fd, SO_TYPE) < 0) refuse("is not a socket");
    if (option_of(fd, SO_DOMAIN) != AF_INET) {
        refuse("is not an IPv4 socket; expected ListenDatagram=" + options.address +
               ":PORT, with the address");
    }
    if (option_of(fd, SO_TYPE) != SOCK_DGRAM || option_of(fd, SO_PROTOCOL) != IPPROTO_UDP) {
        refuse("is not a UDP socket; expected ListenDatagram=");
    }
    socket.assign(udp::v4(), fd);
    const udp::endpoint bound = socket.local_endpoint();
    if (bound.port() == 0) refuse("has no port");
    if (bound.address() != endpoint.address() || (endpoint.port() != 0 && bound.port() != endpoint.port())) {
        refuse("is " + bound.address().to_string() + ":" + std::to_string(bound.port()) +
               "; the configuration and the socket unit must agree");
    }
    grow_buffer(options);
    // If GRO is already on, queued datagrams are coalesced, and can be split only while it stays on.
    int joined = 0;
    socklen_t size = sizeof joined;
    getsockopt(fd, IPPROTO_UDP, UDP_GRO, &joined, &size);
    gro = joined != 0 || (options.gro && set_option(fd, IPPROTO_UDP, UDP_GRO, 1));
}

void ReceiveSocket::grow_buffer(const ReceiverOptions& options) {
    // The kernel stores twice the requested size, in an int.
    constexpr std::size_t largest = std::numeric_limits<int>::max() / 2;
    const int asked = static_cast<int>(std::min(options.receive_buffer_bytes, largest));
    const int fd = socket.native_handle();
    const auto granted = [fd] { return static_cast<std::size_t>(option_of(fd, SO_RCVBUF)) / 2; };
    buffer_bytes = granted();
    const bool own = options.descriptor < 0;
    // An inherited socket may have a larger buffer than this process may request; a request would shrink it.
    if (own || buffer_bytes < options.receive_buffer_bytes) {
        if (!set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, asked) && own)
            set_option(fd, SOL_SOCKET, SO_RCVBUF, asked);
        buffer_bytes = granted();
    }
    if (buffer_bytes >= options.receive_buffer_bytes) return;
    const std::string requested = std::to_string(options.receive_buffer_bytes);
    warnings.push_back(options.address + ":" + std::to_string(options.port) + ": receive buffer of " +
                       requested + " bytes requested, " + std::to_string(buffer_bytes) + " granted; " +
                       (own ? "to allow more: sysctl -w net.core.rmem_max=" + requested
                            : "to raise it, set ReceiveBuffer= in the socket unit"));
}

void ReceiveSocket::join_group(const ReceiverOptions& options) {
    const asio::ip::address_v4 group(parse_address(options.multicast_group, "multicast group"));
    if (!group.is_multicast()) {
        throw std::runtime_error("multicast group: " + options.multicast_group +
                                 " is not a multicast address; expected 224.0.0.0 to 239.255.255.255");
    }
    asio::ip::address_v4 interface_address;  // any: the system chooses
    if (!options.multicast_interface.empty()) {
        interface_address =
            asio::ip::address_v4(parse_address(options.multicast_interface, "multicast interface"));
    }
    boost::system::error_code error;
    socket.set_option(asio::ip::multicast::join_group(group, interface_address), error);
    // An inherited socket may already be a member.
    const bool member = options.descriptor >= 0 && error == asio::error::address_in_use;
    if (error && !member) {
        throw std::runtime_error("cannot join multicast group " + options.multicast_group +
                                 (options.multicast_interface.empty()
                                      ? std::string()
                                      : " on the interface with address " + options.multicast_interface) +
                                 ": " + error.message());
    }
    // Otherwise datagrams for groups that other programs joined would arrive here, too.
    set_option(socket.native_handle(), IPPROTO_IP, IP_MULTICAST_ALL, 0);
}

std::uint32_t ReceiveSocket::kernel_drops() {
    return memory_info(socket.native_handle())[SK_MEMINFO_DROPS];
}

std::size_t ReceiveSocket::queued_bytes() {
    return memory_info(socket.native_handle())[SK_MEMINFO_RMEM_ALLOC];
}

std::uint64_t ReceiveSocket::discard_queued() {
    const std::size_t held = queued_bytes();
    std::size_t drained = 0;
    std::uint64_t datagrams = 0;
    std::byte nothing{};
    while (drained < held) {
        iovec piece{&nothing, sizeof nothing};
        Control control{};
        msghdr message{};
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        // With MSG_TRUNC recvmsg returns the size of the whole message.
        const ssize_t got = recvmsg(socket.native_handle(), &message, MSG_DONTWAIT | MSG_TRUNC);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) break;
        const auto size = static_cast<std::size_t>(got);
        const std::size_t segment = facts_of(message, size).segment;
        datagrams += size == 0 ? 1 : (size + segment - 1) / segment;
        drained += size + least_overhead;
    }
    return datagrams;
}

}  // namespace petacq::net

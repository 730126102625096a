#include "net/receive/udp_socket.hpp"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <stdexcept>
#include <system_error>

#include "net/receive/intake.hpp"

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

/// "192.168.1.10:9601", "[::]:9601"
std::string name_of(const ReceiverOptions& options) {
    const bool ipv6 = options.address.find(':') != std::string::npos;
    return (ipv6 ? '[' + options.address + ']' : options.address) + ':' + std::to_string(options.port);
}

sockaddr_storage bound_address(const ReceiverOptions& options) {
    sockaddr_storage address = parse_socket_address(options.address, "address");
    set_port(address, options.port);
    return address;
}

/// The kernel stores twice the requested size.
std::size_t granted_buffer(int fd) {
    return static_cast<std::size_t>(option_of(fd, SO_RCVBUF)) / 2;
}

}  // namespace

std::size_t request_receive_buffer(int fd, std::size_t bytes, bool or_less) {
    constexpr std::size_t largest = std::numeric_limits<int>::max() / 2;
    const int asked = static_cast<int>(std::min(bytes, largest));
    if (!set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, asked) && or_less)
        set_option(fd, SOL_SOCKET, SO_RCVBUF, asked);
    return granted_buffer(fd);
}

ReceiveSocket::ReceiveSocket(asio::io_context& io, const ReceiverOptions& options)
    : socket(io), groups(options, "cannot receive on " + name_of(options)) {
    const std::string what = "cannot receive on " + name_of(options);
    try {
        options.descriptor >= 0 ? adopt(options) : open(options);
        join_groups(options);
        if (!set_option(socket.native_handle(), SOL_SOCKET, SO_TIMESTAMPNS, 1))
            throw std::runtime_error("SO_TIMESTAMPNS: " + reason());
        socket.non_blocking(true);
        port = local().port;
    } catch (const boost::system::system_error& e) {
        throw BindError(what, e.code());
    } catch (const std::invalid_argument& e) {
        throw std::invalid_argument(what + ": " + e.what());
    } catch (const JoinError& e) {
        throw JoinError(what + ": " + e.what());
    } catch (const std::runtime_error& e) {
        throw std::runtime_error(what + ": " + e.what());
    }
}

Endpoint ReceiveSocket::local() {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    getsockname(socket.native_handle(), reinterpret_cast<sockaddr*>(&address), &size);
    return endpoint_of(address);
}

void ReceiveSocket::open(const ReceiverOptions& options) {
    const sockaddr_storage address = bound_address(options);
    socket.open(address.ss_family == AF_INET6 ? udp::v6() : udp::v4());
    const int fd = socket.native_handle();
    const auto must_set = [fd](int level, int name, const char* text) {
        if (!set_option(fd, level, name, 1)) throw std::runtime_error(text + (": " + reason()));
    };
    // :: stands for the addresses of both families, whatever net.ipv6.bindv6only says.
    if (address.ss_family == AF_INET6) set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (options.free_bind) must_set(IPPROTO_IP, IP_FREEBIND, "IP_FREEBIND");
    grow_buffer(options);  // before bind: nothing is queued under the small limit
    gro = options.gro && set_option(fd, IPPROTO_UDP, UDP_GRO, 1);
    if (options.gro && !gro)
        warnings.push_back(name_of(options) + ": no UDP_GRO (" + reason() + "); continuing without it");
    // Whoever binds without SO_REUSEPORT is refused if anybody holds the port, and so two daemons never share
    // one. Only those that follow the first bind with it, which the first allows when it holds the port.
    if (options.port_use == PortUse::follows) must_set(SOL_SOCKET, SO_REUSEPORT, "SO_REUSEPORT");
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), size_of(address)) != 0)
        throw boost::system::system_error(errno, boost::system::system_category());
    if (options.port_use == PortUse::first) must_set(SOL_SOCKET, SO_REUSEPORT, "SO_REUSEPORT");
}

void ReceiveSocket::adopt(const ReceiverOptions& options) {
    const int fd = options.descriptor;
    const auto refuse = [](const std::string& why) {
        throw std::invalid_argument("the inherited socket " + why);
    };
    const sockaddr_storage expected = bound_address(options);
    const bool ipv6 = expected.ss_family == AF_INET6;
    if (option_of(fd, SO_TYPE) < 0) refuse("is not a socket");
    if (option_of(fd, SO_DOMAIN) != expected.ss_family) {
        refuse(std::string(ipv6 ? "is not an IPv6" : "is not an IPv4") +
               " socket; expected ListenDatagram=" + options.address + ":PORT, with the address");
    }
    if (option_of(fd, SO_TYPE) != SOCK_DGRAM || option_of(fd, SO_PROTOCOL) != IPPROTO_UDP) {
        refuse("is not a UDP socket; expected ListenDatagram=");
    }
    socket.assign(ipv6 ? udp::v6() : udp::v4(), fd);
    const Endpoint bound = local();
    const Endpoint wanted = endpoint_of(expected);
    if (bound.port == 0) refuse("has no port");
    if (bound.address != wanted.address || (wanted.port != 0 && bound.port != wanted.port))
        refuse("is " + to_text(bound) + "; the configuration and the socket unit must agree");
    grow_buffer(options);
    // If GRO is already on, queued datagrams are coalesced, and can be split only while it stays on.
    int joined = 0;
    socklen_t size = sizeof joined;
    getsockopt(fd, IPPROTO_UDP, UDP_GRO, &joined, &size);
    gro = joined != 0 || (options.gro && set_option(fd, IPPROTO_UDP, UDP_GRO, 1));
}

void ReceiveSocket::grow_buffer(const ReceiverOptions& options) {
    const int fd = socket.native_handle();
    buffer_bytes = granted_buffer(fd);
    const bool own = options.descriptor < 0;
    // An inherited socket may have a larger buffer than this process may request; a request would shrink it.
    if (own || buffer_bytes < options.receive_buffer_bytes)
        buffer_bytes = request_receive_buffer(fd, options.receive_buffer_bytes, own);
    if (buffer_bytes >= options.receive_buffer_bytes) return;
    const std::string requested = std::to_string(options.receive_buffer_bytes);
    warnings.push_back(name_of(options) + ": receive buffer of " + requested + " bytes requested, " +
                       std::to_string(buffer_bytes) + " granted; " +
                       (own ? "to allow more: sysctl -w net.core.rmem_max=" + requested
                            : "to raise it, set ReceiveBuffer= in the socket unit"));
}

void ReceiveSocket::join_groups(const ReceiverOptions& options) {
    if (groups.empty()) return;
    groups.refresh(socket.native_handle());
    for (const Membership& one : groups.published()) {
        if (one.trouble.empty()) continue;
        const std::string what = "multicast group " + one.group + " is not joined: " + one.trouble;
        if (!options.free_bind) throw JoinError(what);
        warnings.push_back(name_of(options) + ": " + what);
    }
}

SocketMemory memory_of(int fd) {
    std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
    socklen_t size = sizeof info;
    getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info.data(), &size);
    return {info[SK_MEMINFO_RMEM_ALLOC], info[SK_MEMINFO_RCVBUF], info[SK_MEMINFO_DROPS]};
}

std::uint32_t ReceiveSocket::kernel_drops() {
    return memory_of(socket.native_handle()).drops;
}

std::size_t ReceiveSocket::queued_bytes() {
    return memory_of(socket.native_handle()).queued;
}

std::uint64_t ReceiveSocket::discard_queued() {
    const std::size_t held = queued_bytes();
    std::size_t drained = 0;
    std::uint64_t datagrams = 0;
    std::byte nothing{};
    while (drained < held) {
        iovec piece{&nothing, sizeof nothing};
        ReceiveControl control{};
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
        drained += size + min_overhead;
    }
    return datagrams;
}

}  // namespace petacq::net

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

/// -1: it is no socket.
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

asio::ip::address_v4 parse_ipv4(const std::string& text, const std::string& what) {
    boost::system::error_code error;
    auto address = asio::ip::make_address_v4(text, error);
    if (!error) return address;
    boost::system::error_code not_v6;
    (void)asio::ip::make_address_v6(text, not_v6);
    if (!not_v6) {
        throw std::runtime_error(what + ": '" + text +
                                 "' is an IPv6 address, which is not supported; expected an IPv4 address");
    }
    throw std::runtime_error(what + ": '" + text +
                             "' is not an IPv4 address; expected one like 192.168.1.10");
}

ReceiveSocket::ReceiveSocket(asio::io_context& io, const ReceiverOptions& options) : socket(io) {
    const std::string name = options.address + ":" + std::to_string(options.port);
    const std::string what = "cannot receive on " + name;
    const udp::endpoint endpoint(parse_ipv4(options.address, what), options.port);
    try {
        if (options.descriptor >= 0) {
            adopt(endpoint, options);
        } else {
            open(endpoint, options);
        }
        if (!options.multicast_group.empty()) join_group(options);
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
                           reason() + "); going on without");
    }
    socket.bind(endpoint);
}

void ReceiveSocket::adopt(const udp::endpoint& endpoint, const ReceiverOptions& options) {
    const int fd = options.descriptor;
    const auto refuse = [](const std::string& why) {
        throw std::invalid_argument("the socket handed over " + why);
    };
    if (option_of(fd, SO_TYPE) < 0) refuse("is no socket");
    if (option_of(fd, SO_DOMAIN) != AF_INET) {
        refuse("is not an IPv4 one; expected ListenDatagram=" + options.address + ":PORT, with the address");
    }
    if (option_of(fd, SO_TYPE) != SOCK_DGRAM || option_of(fd, SO_PROTOCOL) != IPPROTO_UDP) {
        refuse("is not a UDP one; expected ListenDatagram=");
    }
    socket.assign(udp::v4(), fd);
    const udp::endpoint bound = socket.local_endpoint();
    if (bound.port() == 0) refuse("has no port");
    if (bound.address() != endpoint.address() || (endpoint.port() != 0 && bound.port() != endpoint.port())) {
        refuse("is " + bound.address().to_string() + ":" + std::to_string(bound.port()) +
               "; configuration and socket unit must agree");
    }
    grow_buffer(options);
    // It may be on already: what was queued then is joined, and can only be split while it stays so.
    int joined = 0;
    socklen_t size = sizeof joined;
    getsockopt(fd, IPPROTO_UDP, UDP_GRO, &joined, &size);
    gro = joined != 0 || (options.gro && set_option(fd, IPPROTO_UDP, UDP_GRO, 1));
}

void ReceiveSocket::grow_buffer(const ReceiverOptions& options) {
    // The kernel stores twice what is asked, in an int.
    constexpr std::size_t largest = std::numeric_limits<int>::max() / 2;
    const int asked = static_cast<int>(std::min(options.receive_buffer_bytes, largest));
    const int fd = socket.native_handle();
    const auto granted = [fd] { return static_cast<std::size_t>(option_of(fd, SO_RCVBUF)) / 2; };
    buffer_bytes = granted();
    const bool own = options.descriptor < 0;
    // One handed over may have more than we may ask for: asking would take it away.
    if (own || buffer_bytes < options.receive_buffer_bytes) {
        if (!set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, asked) && own)
            set_option(fd, SOL_SOCKET, SO_RCVBUF, asked);
        buffer_bytes = granted();
    }
    if (buffer_bytes < options.receive_buffer_bytes && !own) {
        warnings.push_back(options.address + ":" + std::to_string(options.port) + ": receive buffer of " +
                           std::to_string(options.receive_buffer_bytes) + " bytes asked for, " +
                           std::to_string(buffer_bytes) +
                           " granted; to have more: ReceiveBuffer= in the socket unit");
    } else if (buffer_bytes < options.receive_buffer_bytes) {
        warnings.push_back(options.address + ":" + std::to_string(options.port) + ": receive buffer of " +
                           std::to_string(options.receive_buffer_bytes) + " bytes asked for, " +
                           std::to_string(buffer_bytes) +
                           " granted; to allow more: sysctl -w net.core.rmem_max=" +
                           std::to_string(options.receive_buffer_bytes));
    }
}

void ReceiveSocket::join_group(const ReceiverOptions& options) {
    const auto group = parse_ipv4(options.multicast_group, "multicast group");
    if (!group.is_multicast()) {
        throw std::runtime_error("multicast group: " + options.multicast_group +
                                 " is not a multicast address; expected 224.0.0.0 to 239.255.255.255");
    }
    asio::ip::address_v4 interface_address;  // any: the system's choice
    if (!options.multicast_interface.empty()) {
        interface_address = parse_ipv4(options.multicast_interface, "multicast interface");
    }
    boost::system::error_code error;
    socket.set_option(asio::ip::multicast::join_group(group, interface_address), error);
    // A socket that outlived a daemon is a member already.
    const bool member = options.descriptor >= 0 && error == asio::error::address_in_use;
    if (error && !member) {
        throw std::runtime_error("cannot join multicast group " + options.multicast_group +
                                 (options.multicast_interface.empty()
                                      ? std::string()
                                      : " on the interface with address " + options.multicast_interface) +
                                 ": " + error.message());
    }
    // Otherwise groups that other programs joined would arrive here as well.
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
        alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
        msghdr message{};
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        // MSG_TRUNC: the size of the message, whatever fits.
        const ssize_t got = recvmsg(socket.native_handle(), &message, MSG_DONTWAIT | MSG_TRUNC);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) break;
        const auto size = static_cast<std::size_t>(got);
        const std::size_t segment = segment_size(message, size);
        datagrams += size == 0 ? 1 : (size + segment - 1) / segment;
        drained += size + least_overhead;
    }
    return datagrams;
}

}  // namespace petacq::net

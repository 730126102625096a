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

namespace petacq::net {

namespace asio = boost::asio;
using asio::ip::udp;

namespace {

bool set_option(int fd, int level, int name, int value) {
    return setsockopt(fd, level, name, &value, sizeof value) == 0;
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
    const auto address = asio::ip::make_address_v4(text, error);
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
        socket.open(udp::v4());
        if (options.reuse_port && !set_option(socket.native_handle(), SOL_SOCKET, SO_REUSEPORT, 1)) {
            throw std::runtime_error("SO_REUSEPORT: " + reason());
        }
        grow_buffer(options);  // before bind: nothing is queued under the small limit
        gro = options.gro && set_option(socket.native_handle(), IPPROTO_UDP, UDP_GRO, 1);
        if (options.gro && !gro)
            warnings.push_back(name + ": no UDP_GRO (" + reason() + "); going on without");
        socket.bind(endpoint);
        if (!options.multicast_group.empty()) join_group(options);
        socket.non_blocking(true);
        port = socket.local_endpoint().port();
    } catch (const boost::system::system_error& e) {
        throw std::runtime_error(what + ": " + e.code().message());
    } catch (const std::runtime_error& e) {
        throw std::runtime_error(what + ": " + e.what());
    }
}

void ReceiveSocket::grow_buffer(const ReceiverOptions& options) {
    // The kernel stores twice what is asked, in an int.
    constexpr std::size_t largest = std::numeric_limits<int>::max() / 2;
    const int asked = static_cast<int>(std::min(options.receive_buffer_bytes, largest));
    const int fd = socket.native_handle();
    if (!set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, asked)) set_option(fd, SOL_SOCKET, SO_RCVBUF, asked);
    int doubled = 0;
    socklen_t size = sizeof doubled;
    getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &doubled, &size);
    buffer_bytes = static_cast<std::size_t>(doubled) / 2;
    if (buffer_bytes < options.receive_buffer_bytes) {
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
    if (error) {
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

}  // namespace petacq::net

#include "tests/simulation/preload/network.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/simulation/preload/intercept.hpp"

namespace petacq::simulation {

namespace {

/// What a datagram takes of a socket's buffer besides its bytes. That of a kernel depends on its version.
constexpr std::uint32_t overhead = 768;
constexpr std::uint16_t port_of_senders = 20'000;

std::uint32_t size_in_buffer(std::size_t bytes) {
    return static_cast<std::uint32_t>(bytes) + overhead;
}

}  // namespace

void Network::made(int descriptor) {
    sockets_[descriptor] = {};
    scheduler_.readiness.made(descriptor);
}

void Network::bound(int descriptor) {
    Socket& socket = sockets_.at(descriptor);
    socklen_t size = sizeof socket.room;
    ::getsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &socket.room, &size);
    order_.push_back(descriptor);
}

void Network::closed(int descriptor) {
    const auto found = sockets_.find(descriptor);
    if (found == sockets_.end()) return;
    sockets_.erase(found);
    order_.erase(std::remove(order_.begin(), order_.end(), descriptor), order_.end());
}

void Network::send(std::size_t from, std::span<const std::byte> datagram) {
    if (order_.empty()) return;
    const int descriptor = order_[from % order_.size()];
    Socket& to = sockets_.at(descriptor);
    record_.arrived(scheduler_.now_ns(), datagram);
    if (to.memory.queued > to.room) {
        ++to.memory.dropped;
        return;
    }
    to.memory.queued += size_in_buffer(datagram.size());
    to.waiting.push_back({scheduler_.now_ns(), {datagram.begin(), datagram.end()}});
    scheduler_.became_readable(descriptor);
}

ssize_t Network::receive(int descriptor, msghdr& message, int flags, std::int64_t wall_ns) {
    Socket& from = sockets_.at(descriptor);
    if (from.waiting.empty()) return -1;
    const Waiting datagram = std::move(from.waiting.front());
    from.waiting.pop_front();
    from.memory.queued -= size_in_buffer(datagram.bytes.size());
    if (from.waiting.empty()) scheduler_.readiness.set(descriptor, false);
    std::size_t taken = 0;
    for (std::size_t i = 0; i < message.msg_iovlen && taken < datagram.bytes.size(); ++i) {
        const std::size_t n = std::min(message.msg_iov[i].iov_len, datagram.bytes.size() - taken);
        std::memcpy(message.msg_iov[i].iov_base, datagram.bytes.data() + taken, n);
        taken += n;
    }
    message.msg_flags = taken < datagram.bytes.size() ? MSG_TRUNC : 0;
    if (message.msg_name != nullptr) {
        sockaddr_in sender{};
        sender.sin_family = AF_INET;
        sender.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        sender.sin_port = htons(port_of_senders);
        std::memcpy(message.msg_name, &sender, std::min<std::size_t>(message.msg_namelen, sizeof sender));
        message.msg_namelen = sizeof sender;
    }
    const timespec stamp = timespec_of(datagram.arrived_ns + wall_ns);
    if (message.msg_controllen >= CMSG_SPACE(sizeof stamp)) {
        cmsghdr* const control = CMSG_FIRSTHDR(&message);
        control->cmsg_level = SOL_SOCKET;
        control->cmsg_type = SO_TIMESTAMPNS;
        control->cmsg_len = CMSG_LEN(sizeof stamp);
        std::memcpy(CMSG_DATA(control), &stamp, sizeof stamp);
        message.msg_controllen = CMSG_SPACE(sizeof stamp);
    } else {
        message.msg_controllen = 0;
    }
    return static_cast<ssize_t>((flags & MSG_TRUNC) != 0 ? datagram.bytes.size() : taken);
}

}  // namespace petacq::simulation

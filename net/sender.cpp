#include "net/sender.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "net/endpoint.hpp"
#include "net/wire.hpp"

namespace petacq::net {

namespace {

constexpr unsigned max_messages = 64;  // per sendmmsg

using Payload = std::span<const std::byte>;

// The number of payloads at the front that one GSO send can carry: back to back and of one size; the last may
// be shorter.
std::size_t run_length(std::span<const Payload> payloads, std::size_t largest_segment) {
    const std::size_t segment = payloads.front().size();
    if (segment == 0 || segment > largest_segment) return 1;
    std::size_t bytes = segment;
    std::size_t n = 1;
    while (n < payloads.size() && n < max_segments) {
        const Payload& next = payloads[n];
        if (next.data() != payloads.front().data() + bytes || next.empty() || next.size() > segment) break;
        if (bytes + next.size() > max_datagram_bytes) break;
        bytes += next.size();
        ++n;
        if (next.size() < segment) break;
    }
    return n;
}

struct Descriptor {
    explicit Descriptor(int d) : fd(d) {}
    ~Descriptor() {
        if (fd >= 0) close(fd);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    const int fd;
};

}  // namespace

struct Sender::Impl {
    explicit Impl(const SenderOptions& options);
    void send(std::span<const Payload> payloads);

    const std::string name;
    const Descriptor socket;
    std::size_t largest_segment = 0;  // largest that GSO accepts; 0: no GSO
    std::uint64_t sent = 0;
    bool refused = false;  // the last attempt to send failed with ECONNREFUSED

  private:
    unsigned fill(std::span<const Payload> payloads);
    std::size_t handle(int error);

    std::array<mmsghdr, max_messages> headers{};
    std::array<iovec, max_messages> pieces{};
    std::array<std::size_t, max_messages> runs{};      // payloads in each message
    std::array<std::size_t, max_messages> segments{};  // and the size of the first of them
    struct alignas(cmsghdr) SendControl {
        std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> bytes;
    };
    std::array<SendControl, max_messages> controls{};
};

Sender::Impl::Impl(const SenderOptions& options)
    : name((options.address.find(':') == std::string::npos ? options.address : '[' + options.address + ']') +
           ":" + std::to_string(options.port)),
      socket(::socket(parse_socket_address(options.address, "cannot send to " + name).ss_family,
                      SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const std::string what = "cannot send to " + name;
    const auto check = [&](bool good) {
        if (!good) throw std::runtime_error(what + ": " + std::generic_category().message(errno));
    };
    const auto set = [&](int level, int option, int value) {
        return setsockopt(socket.fd, level, option, &value, sizeof value) == 0;
    };
    sockaddr_storage to = parse_socket_address(options.address, what);
    set_port(to, options.port);
    if (options.port == 0) throw std::runtime_error(what + ": no port; expected 1 to 65535");
    check(socket.fd >= 0);
    const int buffer = static_cast<int>(std::min<std::size_t>(options.send_buffer_bytes, 1U << 30));
    if (!set(SOL_SOCKET, SO_SNDBUFFORCE, buffer)) set(SOL_SOCKET, SO_SNDBUF, buffer);
    if (!options.multicast_interface.empty()) {
        in_addr from{htonl(parse_address(options.multicast_interface, what))};
        check(setsockopt(socket.fd, IPPROTO_IP, IP_MULTICAST_IF, &from, sizeof from) == 0);
    }
    check(connect(socket.fd, reinterpret_cast<const sockaddr*>(&to), size_of(to)) == 0);
    if (options.gso && set(IPPROTO_UDP, UDP_SEGMENT, 0)) largest_segment = max_datagram_bytes;
}

// Prepares the messages of one call. Returns their number.
unsigned Sender::Impl::fill(std::span<const Payload> payloads) {
    unsigned count = 0;
    for (; count < max_messages && !payloads.empty(); ++count) {
        const std::size_t run = run_length(payloads, largest_segment);
        const Payload& first = payloads.front();
        const Payload& last = payloads[run - 1];
        iovec& piece = pieces[count];
        piece.iov_base = const_cast<std::byte*>(first.data());  // the kernel only reads it
        piece.iov_len = static_cast<std::size_t>(last.data() + last.size() - first.data());
        msghdr& header = headers[count].msg_hdr;
        header = {};
        header.msg_iov = &piece;
        header.msg_iovlen = 1;
        if (run > 1) {
            header.msg_control = &controls[count];
            header.msg_controllen = sizeof(SendControl);
            cmsghdr* c = CMSG_FIRSTHDR(&header);
            c->cmsg_level = IPPROTO_UDP;
            c->cmsg_type = UDP_SEGMENT;
            c->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
            const auto segment = static_cast<std::uint16_t>(first.size());
            std::memcpy(CMSG_DATA(c), &segment, sizeof segment);
        }
        runs[count] = run;
        segments[count] = first.size();
        payloads = payloads.subspan(run);
    }
    return count;
}

// Handles an error of the first message. Returns the number of payloads to skip.
std::size_t Sender::Impl::handle(int error) {
    const std::size_t run = runs[0];
    switch (error) {
        case EINTR:
            return 0;
        case EAGAIN: {
            pollfd p{socket.fd, POLLOUT, 0};
            poll(&p, 1, -1);
            return 0;
        }
        case ENOBUFS:  // a queue below the socket is full, and there is no event to wait for
            std::this_thread::sleep_for(std::chrono::microseconds(100));
            return 0;
        case ECONNREFUSED:  // reports the fate of an earlier datagram; this one was not sent
            refused = !refused;
            if (refused) return 0;
            sent += run;
            return run;
        case EINVAL:
        case EMSGSIZE:
            if (run == 1) break;
            // Longer than a packet of the interface: such datagrams are sent in fragments, without GSO.
            largest_segment = segments[0] - 1;
            return 0;
        case EIO:
        case EOPNOTSUPP:
        case ENOPROTOOPT:
            if (run == 1) break;
            largest_segment = 0;
            return 0;
        default:
            break;
    }
    throw std::system_error(error, std::generic_category(),
                            "cannot send " + std::to_string(pieces[0].iov_len) + " bytes to " + name);
}

void Sender::Impl::send(std::span<const Payload> payloads) {
    while (!payloads.empty()) {
        const unsigned count = fill(payloads);
        const int n = sendmmsg(socket.fd, headers.data(), count, MSG_DONTWAIT);
        std::size_t done = 0;
        if (n < 0) {
            done = handle(errno);
        } else {
            refused = false;
            for (int i = 0; i < n; ++i)
                done += runs[static_cast<std::size_t>(i)];
            sent += done;
        }
        payloads = payloads.subspan(done);
    }
}

Sender::Sender(const SenderOptions& options) : impl_(std::make_unique<Impl>(options)) {}

Sender::~Sender() = default;

void Sender::send(std::span<const std::span<const std::byte>> payloads) {
    impl_->send(payloads);
}

std::uint64_t Sender::datagrams_sent() const {
    return impl_->sent;
}

bool Sender::gso() const {
    return impl_->largest_segment > 0;
}

std::uint16_t Sender::local_port() const {
    sockaddr_in own{};
    socklen_t size = sizeof own;
    getsockname(impl_->socket.fd, reinterpret_cast<sockaddr*>(&own), &size);
    return ntohs(own.sin_port);
}

}  // namespace petacq::net

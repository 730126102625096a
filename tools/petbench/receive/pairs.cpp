#include "tools/petbench/receive/pairs.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "net/wire.hpp"

namespace petacq::bench {

namespace {

net::Frame valid_frame(std::uint64_t time) {
    net::Frame frame{};
    frame.head_marker = net::default_head_marker;
    frame.tail_marker = net::default_tail_marker;
    frame.time = time;
    return frame;
}

}  // namespace

BareLoop::BareLoop(const ReceiveSuite& options, const std::string& address)
    : fd_(socket(AF_INET, SOCK_DGRAM, 0)) {
    const int buffer = static_cast<int>(options.receive_buffer_bytes);
    if (setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) != 0) {
        setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    }
    const int on = options.gro ? 1 : 0;
    setsockopt(fd_, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
    const timeval patience{0, 20'000};  // how often stop_ is checked
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    inet_pton(AF_INET, address.c_str(), &own.sin_addr);
    socklen_t size = sizeof own;
    if (bind(fd_, reinterpret_cast<sockaddr*>(&own), size) != 0 ||
        getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &size) != 0) {
        const int error = errno;
        close(fd_);
        throw std::system_error(error, std::generic_category(), "bare loop: bind");
    }
    port_ = ntohs(own.sin_port);
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "bare");
}

BareLoop::~BareLoop() {
    finish();
    close(fd_);
}

Totals BareLoop::finish() {
    stop_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
    return totals_;
}

void BareLoop::run() {
    constexpr std::size_t messages = 64;
    constexpr std::size_t message_bytes = std::size_t{64} << 10;
    const std::vector<char> memory(messages * message_bytes);
    std::array<iovec, messages> pieces{};
    std::array<mmsghdr, messages> headers{};
    struct alignas(cmsghdr) MessageControl {
        std::array<char, CMSG_SPACE(sizeof(int))> bytes;
    };
    std::array<MessageControl, messages> controls{};
    for (std::size_t i = 0; i < messages; ++i) {
        pieces[i] = {const_cast<char*>(memory.data()) + i * message_bytes, message_bytes};
        headers[i].msg_hdr.msg_iov = &pieces[i];
        headers[i].msg_hdr.msg_iovlen = 1;
        headers[i].msg_hdr.msg_control = &controls[i];
    }
    while (!stop_.load(std::memory_order_relaxed)) {
        for (mmsghdr& h : headers)
            h.msg_hdr.msg_controllen = sizeof(MessageControl);
        const int got = recvmmsg(fd_, headers.data(), messages, MSG_WAITFORONE, nullptr);
        for (int i = 0; i < got; ++i) {
            mmsghdr& h = headers[static_cast<std::size_t>(i)];
            std::size_t segment = h.msg_len;
            if (const cmsghdr* c = CMSG_FIRSTHDR(&h.msg_hdr); c != nullptr) {
                int size = 0;
                std::memcpy(&size, CMSG_DATA(c), sizeof size);
                segment = static_cast<std::size_t>(size);
            }
            totals_.bytes += h.msg_len;
            totals_.datagrams += (h.msg_len + segment - 1) / segment;
        }
    }
    totals_.cpu_seconds = thread_cpu_seconds();
}

Load::Load(const std::string& address, std::uint16_t port, std::size_t payload, bool gso)
    : block_(max_bytes), sender_({address, port, gso}) {
    // Whole GSO messages, all of one size.
    const std::size_t run = std::clamp<std::size_t>(net::max_datagram_bytes / payload, 1, net::max_segments);
    const std::size_t count = max_bytes / (run * payload) * run;
    for (std::size_t i = 0; i < count; ++i) {
        std::byte* datagram = block_.data() + i * payload;
        net::encode_header({0, 1, i}, datagram, net::FrameVersion::one);
        for (std::size_t at = net::header_bytes; at < payload; at += net::frame_bytes)
            net::encode_frame(valid_frame(i * payload + at), datagram + at, net::FrameVersion::one);
        payloads_.emplace_back(datagram, payload);
    }
    thread_ = std::thread([this] {
        while (!stop_.load(std::memory_order_relaxed))
            sender_.send(payloads_);
    });
    pthread_setname_np(thread_.native_handle(), "send");
}

std::uint64_t Load::finish() {
    stop_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
    return sender_.datagrams_sent();
}

}  // namespace petacq::bench

// petbench receive: the receiver against a bare recvmmsg loop that discards what it reads.
//
// The two are measured in turns against the same sender at full speed. Where sender and receiver share few
// cores the rate depends on the sender as much as on the receiver. The reproducible figure is the CPU time
// that the receiving thread spends on a million datagrams.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <ctime>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>

#include "net/receiver.hpp"
#include "net/sender.hpp"
#include "net/wire.hpp"
#include "tools/petbench/measure.hpp"
#include "tools/petbench/suites.hpp"

namespace petacq::bench {

namespace {

struct Totals {
    std::uint64_t datagrams = 0;
    std::uint64_t bytes = 0;
    double cpu_seconds = 0;
};

double thread_cpu_seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// The lower bound for the cost of receiving: one recvmmsg after the other into the same buffers.
class BareLoop {
  public:
    explicit BareLoop(const ReceiveSuite& options) : fd_(socket(AF_INET, SOCK_DGRAM, 0)) {
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
        own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof own;
        if (bind(fd_, reinterpret_cast<sockaddr*>(&own), size) != 0 ||
            getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &size) != 0) {
            const int error = errno;
            close(fd_);
            throw std::system_error(error, std::generic_category(), "bare loop: bind");
        }
        port_ = ntohs(own.sin_port);
        thread_ = std::thread([this] { run(); });
    }
    ~BareLoop() {
        finish();
        close(fd_);
    }
    BareLoop(const BareLoop&) = delete;
    BareLoop& operator=(const BareLoop&) = delete;

    [[nodiscard]] std::uint16_t port() const { return port_; }

    Totals finish() {
        stop_.store(true, std::memory_order_relaxed);
        if (thread_.joinable()) thread_.join();
        return totals_;
    }

  private:
    void run() {
        constexpr std::size_t messages = 64;
        constexpr std::size_t message_bytes = std::size_t{64} << 10;
        const std::vector<char> memory(messages * message_bytes);
        std::array<iovec, messages> pieces{};
        std::array<mmsghdr, messages> headers{};
        struct alignas(cmsghdr) Control {
            std::array<char, CMSG_SPACE(sizeof(int))> bytes;
        };
        std::array<Control, messages> controls{};
        for (std::size_t i = 0; i < messages; ++i) {
            pieces[i] = {const_cast<char*>(memory.data()) + i * message_bytes, message_bytes};
            headers[i].msg_hdr.msg_iov = &pieces[i];
            headers[i].msg_hdr.msg_iovlen = 1;
            headers[i].msg_hdr.msg_control = &controls[i];
        }
        while (!stop_.load(std::memory_order_relaxed)) {
            for (mmsghdr& h : headers)
                h.msg_hdr.msg_controllen = sizeof(Control);
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

    int fd_;
    std::uint16_t port_ = 0;
    std::atomic<bool> stop_{false};
    Totals totals_;
    std::thread thread_;
};

/// The receiver, with a consumer that gives every batch back at once.
class OwnReceiver {
  public:
    explicit OwnReceiver(const ReceiveSuite& options)
        : pool_(options.batch_count, options.batch_bytes, net::make_host_memory({})),
          queue_(1, options.batch_count),
          receiver_(settings(options), pool_, queue_.lane(0)) {
        receiver_.start();
        consumer_ = std::thread([this] {
            while (!stop_.load(std::memory_order_relaxed)) {
                const auto piece = queue_.take(std::chrono::milliseconds(20));
                if (piece && piece->last) pool_.put(piece->batch);
            }
        });
    }
    ~OwnReceiver() { finish(); }
    OwnReceiver(const OwnReceiver&) = delete;
    OwnReceiver& operator=(const OwnReceiver&) = delete;

    [[nodiscard]] std::uint16_t port() const { return receiver_.port(); }

    Totals finish() {
        receiver_.stop();
        stop_.store(true, std::memory_order_relaxed);
        if (consumer_.joinable()) consumer_.join();
        const net::ReceiverCounters& c = receiver_.counters();
        return {c.datagrams_delivered.value(), c.bytes_received.value(),
                1e-9 * static_cast<double>(c.cpu_ns.value())};
    }

  private:
    static net::ReceiverOptions settings(const ReceiveSuite& options) {
        net::ReceiverOptions o;
        o.address = "127.0.0.1";
        o.receive_buffer_bytes = options.receive_buffer_bytes;
        o.gro = options.gro;
        return o;
    }

    net::BatchPool pool_;
    net::BatchQueue queue_;
    net::Receiver receiver_;
    std::atomic<bool> stop_{false};
    std::thread consumer_;
};

/// Sends the same block of datagrams over and over.
class Load {
  public:
    Load(std::uint16_t port, std::size_t payload, bool gso)
        : block_(count * payload), sender_({"127.0.0.1", port, gso}) {
        for (std::size_t i = 0; i < count; ++i) {
            std::byte* datagram = block_.data() + i * payload;
            net::encode_header({0, 1, i}, datagram);
            payloads_.emplace_back(datagram, payload);
        }
        thread_ = std::thread([this] {
            while (!stop_.load(std::memory_order_relaxed))
                sender_.send(payloads_);
        });
    }
    ~Load() { finish(); }
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;

    std::uint64_t finish() {
        stop_.store(true, std::memory_order_relaxed);
        if (thread_.joinable()) thread_.join();
        return sender_.datagrams_sent();
    }

  private:
    static constexpr std::size_t count = 256;
    std::vector<std::byte> block_;
    std::vector<std::span<const std::byte>> payloads_;
    net::Sender sender_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

struct Figures {
    std::vector<double> rate;  // datagrams/s
    std::vector<double> cpu;   // seconds per million datagrams
    std::vector<double> loss;  // fraction
};

template <class Receiving>
void measure(const ReceiveSuite& options, std::size_t payload, Figures& figures) {
    std::vector<std::unique_ptr<Receiving>> receivers;
    std::vector<std::unique_ptr<Load>> loads;
    for (unsigned i = 0; i < options.pairs; ++i)
        receivers.push_back(std::make_unique<Receiving>(options));
    std::uint64_t sent = 0;
    const double seconds = seconds_of([&] {
        for (const auto& r : receivers) {
            loads.push_back(std::make_unique<Load>(r->port(), payload, options.gso));
        }
        std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
        for (const auto& l : loads)
            sent += l->finish();
    });
    Totals sum;
    for (const auto& r : receivers) {
        const Totals t = r->finish();
        sum.datagrams += t.datagrams;
        sum.bytes += t.bytes;
        sum.cpu_seconds += t.cpu_seconds;
    }
    const auto datagrams = static_cast<double>(sum.datagrams);
    figures.rate.push_back(datagrams / seconds);
    figures.cpu.push_back(1e6 * sum.cpu_seconds / datagrams);
    figures.loss.push_back(1 - datagrams / static_cast<double>(sent));
}

void print(const char* name, const Figures& f, std::size_t payload) {
    const double rate = median(f.rate);
    const std::size_t whole_frames = (payload - net::header_bytes) / net::frame_bytes;
    const auto frames = static_cast<double>(whole_frames);
    std::printf(
        "  %-5s %9.0f datagrams/s %7.2f Gb/s %7.1f M frames/s   %6.2f %% lost   %7.3f CPU s per M "
        "datagrams\n",
        name, rate, rate * static_cast<double>(payload) * 8e-9, rate * frames * 1e-6, 100 * median(f.loss),
        median(f.cpu));
}

}  // namespace

void run(const ReceiveSuite& options) {
    std::printf("receive: %u pair(s), GSO %s, GRO %s, medians of %u x %g s in turns\n", options.pairs,
                options.gso ? "on" : "off", options.gro ? "on" : "off", options.repetitions, options.seconds);
    for (const std::size_t asked : options.payloads) {
        const std::size_t payload = asked / net::frame_bytes * net::frame_bytes;  // whole frames
        Figures bare;
        Figures own;
        for (unsigned i = 0; i < options.repetitions; ++i) {
            if (i % 2 == 0) measure<BareLoop>(options, payload, bare);
            measure<OwnReceiver>(options, payload, own);
            if (i % 2 != 0) measure<BareLoop>(options, payload, bare);
        }
        std::printf("payload %zu bytes\n", payload);
        print("bare", bare, payload);
        print("ours", own, payload);
        std::printf("  ours/bare: rate %.3f, datagrams per CPU second %.3f\n",
                    median_ratio(own.rate, bare.rate), median_ratio(bare.cpu, own.cpu));
        std::fflush(stdout);
    }
}

}  // namespace petacq::bench

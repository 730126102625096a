// petbench receive: the receiver against a bare recvmmsg loop that discards what it reads.
//
// The two are measured in turns against the same sender at full speed. Where sender and receiver share few
// cores the rate depends on the sender as much as on the receiver. The reproducible figure is the CPU time
// that the receiving thread spends on a million datagrams. Over veth, the kernel cuts and joins datagrams in
// the time of the sending thread.
#include <atomic>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

#include "net/receive/receiver.hpp"
#include "net/wire.hpp"
#include "tools/petbench/base/measure.hpp"
#include "tools/petbench/base/suites.hpp"
#include "tools/petbench/receive/pairs.hpp"

namespace petacq::bench {

namespace {

/// The receiver, with a consumer that gives every batch back at once.
class OwnReceiver {
  public:
    OwnReceiver(const ReceiveSuite& options, const std::string& address)
        : pool_(options.batch_count, options.batch_bytes, net::make_host_memory({})),
          queue_(1, options.batch_count),
          receiver_(settings(options, address), pool_, queue_.lane(0)) {
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
    static net::ReceiverOptions settings(const ReceiveSuite& options, const std::string& address) {
        net::ReceiverOptions o;
        o.address = address;
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

void print(const char* name, const ReceiveFigures& f, std::size_t payload) {
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
    std::printf("receive: %u pair(s) over %s, GSO %s, GRO %s, medians of %u x %g s in turns\n", options.pairs,
                options.veth ? "veth" : "loopback", options.gso ? "on" : "off", options.gro ? "on" : "off",
                options.repetitions, options.seconds);
    for (const std::size_t asked : options.payloads) {
        const std::size_t payload = asked / net::frame_bytes * net::frame_bytes;  // whole frames
        std::optional<VethPairs> pairs;
        if (options.veth) pairs.emplace(options.pairs, payload);
        const VethPairs* const veth = pairs ? &*pairs : nullptr;
        ReceiveFigures bare;
        ReceiveFigures own;
        for (unsigned i = 0; i < options.repetitions; ++i) {
            if (i % 2 == 0) measure<BareLoop>(options, payload, veth, bare);
            measure<OwnReceiver>(options, payload, veth, own);
            if (i % 2 != 0) measure<BareLoop>(options, payload, veth, bare);
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

#include "tools/petbench/live/senders.hpp"

#include <ctime>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include "net/sender.hpp"
#include "tools/petbench/measure.hpp"

namespace petacq::bench {

namespace {

using Clock = std::chrono::steady_clock;

/// How long a sender collects datagrams that are due before it sends them.
constexpr auto burst = std::chrono::microseconds(100);
/// Datagrams that are stamped and then sent: few enough to be in the cache when the kernel copies them. Those
/// of 1,472 bytes make three GSO messages.
constexpr std::size_t most_at_once = 132;
constexpr double patience = 1.25;  // times the duration

struct Schedule {
    Clock::time_point start;
    double seconds;           // duration
    double ticks_per_second;  // detector time by host time
    std::uint64_t period;

    [[nodiscard]] Clock::time_point host_time(double ticks) const {
        return start + std::chrono::duration_cast<Clock::duration>(
                           std::chrono::duration<double>(ticks / ticks_per_second));
    }
    [[nodiscard]] double elapsed(Clock::time_point now) const {
        return std::chrono::duration<double>(now - start).count();
    }
};

class PartSender {
  public:
    PartSender(StreamPart& part, std::uint16_t port) : part_(part), sender_({"127.0.0.1", port, true}) {}

    Sent run(const Schedule& schedule) {
        const double end = schedule.seconds * schedule.ticks_per_second;
        std::this_thread::sleep_until(schedule.start);
        while (true) {
            const double from = static_cast<double>(pass_) * static_cast<double>(schedule.period);
            const double next = from + static_cast<double>(part_.due(next_));
            if (next >= end) break;
            const Clock::time_point now = Clock::now();
            const double elapsed = schedule.elapsed(now);
            if (elapsed > schedule.seconds * patience) break;
            const Clock::time_point due = schedule.host_time(next) + burst;
            if (now < due) {
                std::this_thread::sleep_until(due);
                continue;
            }
            const double limit = std::min(elapsed * schedule.ticks_per_second, end);
            sent_.worst_delay_s = std::max(sent_.worst_delay_s, elapsed - next / schedule.ticks_per_second);
            send_until(static_cast<std::uint64_t>(limit - from));
        }
        sent_.seconds = schedule.elapsed(Clock::now());
        finish();
        return sent_;
    }

  private:
    /// Sends the datagrams of this pass that are due by then, at least one and not too many.
    void send_until(std::uint64_t due) {
        std::size_t count = 0;
        const std::size_t most = std::min(most_at_once, part_.size() - next_);
        while (count < most && (count == 0 || part_.due(next_ + count) <= due)) {
            sent_.frames += part_.frames(next_ + count);
            sent_.bytes += part_.payloads()[next_ + count].size();
            ++count;
        }
        part_.stamp(next_, count, pass_);
        sender_.send(part_.payloads().subspan(next_, count));
        next_ += count;
        if (next_ == part_.size()) {
            next_ = 0;
            ++pass_;
        }
    }

    void finish() {
        for (const std::vector<std::byte>& datagram : part_.ends(next_, pass_)) {
            const std::span<const std::byte> payload = datagram;
            sender_.send({&payload, 1});
            sent_.bytes += payload.size();
        }
        sent_.datagrams = sender_.datagrams_sent();
        sent_.cpu_seconds = {thread_cpu_seconds()};
    }

    StreamPart& part_;
    net::Sender sender_;
    std::size_t next_ = 0;
    std::uint64_t pass_ = 0;
    Sent sent_;
};

}  // namespace

Sent send(LiveStream& stream, const std::vector<std::uint16_t>& ports, double rate, double seconds) {
    std::vector<std::unique_ptr<PartSender>> senders;
    for (StreamPart& part : stream.parts())
        senders.push_back(std::make_unique<PartSender>(part, ports[senders.size() % ports.size()]));
    const double passes_per_second = rate / static_cast<double>(stream.frames());
    // Every thread has begun by then.
    const Schedule schedule{Clock::now() + std::chrono::milliseconds(20), seconds,
                            passes_per_second * static_cast<double>(stream.period()), stream.period()};
    std::vector<std::future<Sent>> running;
    running.reserve(senders.size());
    for (const auto& sender : senders)
        running.push_back(std::async(std::launch::async, [&] { return sender->run(schedule); }));
    Sent sum;
    for (std::future<Sent>& one : running) {
        const Sent part = one.get();
        sum.datagrams += part.datagrams;
        sum.frames += part.frames;
        sum.bytes += part.bytes;
        sum.seconds = std::max(sum.seconds, part.seconds);
        sum.worst_delay_s = std::max(sum.worst_delay_s, part.worst_delay_s);
        sum.cpu_seconds.insert(sum.cpu_seconds.end(), part.cpu_seconds.begin(), part.cpu_seconds.end());
    }
    return sum;
}

}  // namespace petacq::bench

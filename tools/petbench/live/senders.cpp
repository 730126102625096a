#include "tools/petbench/live/senders.hpp"

#include <algorithm>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

#include "config/base/seconds_since.hpp"
#include "net/sender.hpp"
#include "tools/petbench/base/measure.hpp"

namespace petacq::bench {

namespace {

/// How long a sender collects datagrams that are due before it sends them.
constexpr auto burst = std::chrono::microseconds(100);
/// Datagrams that are stamped and then sent: few enough to be in the cache when the kernel copies them. Those
/// of 1,472 bytes make three GSO messages.
constexpr std::size_t max_at_once = 132;
constexpr double patience = 1.25;          // times the duration
constexpr double leave_out_after = 0.005;  // seconds: what a board buffers

/// A phase, by the clock of the host and by that of the detector.
struct Schedule {
    SendClock::time_point start;
    double seconds;              // duration
    double ticks_per_second;     // detector time by host time
    std::uint64_t period;        // of the stream
    std::uint64_t ticks_before;  // added to the times of the frames of the first pass

    [[nodiscard]] SendClock::time_point host_time(double ticks) const {
        return start + std::chrono::duration_cast<SendClock::duration>(
                           std::chrono::duration<double>(ticks / ticks_per_second));
    }
    [[nodiscard]] double elapsed(SendClock::time_point now) const {
        return std::chrono::duration<double>(now - start).count();
    }
    [[nodiscard]] double ticks() const { return seconds * ticks_per_second; }
};

std::vector<Schedule> schedules_of(std::span<const Phase> phases, SendClock::time_point start) {
    std::vector<Schedule> schedules;
    std::uint64_t ticks = 0;
    for (const Phase& phase : phases) {
        const LiveStream& stream = *phase.stream;
        const double passes_per_second = phase.rate / static_cast<double>(stream.frames());
        schedules.push_back({start, phase.seconds, passes_per_second * static_cast<double>(stream.period()),
                             stream.period(), ticks + phases.front().stream->first() - stream.first()});
        start = schedules.back().host_time(schedules.back().ticks());
        ticks += static_cast<std::uint64_t>(schedules.back().ticks());
    }
    return schedules;
}

/// The sources of one part, through all phases.
class PartSender {
  public:
    PartSender(const StreamPart& first, std::uint16_t port, Behind behind)
        : sources_(first.sources()),
          next_number_(sources_.size()),
          sender_({"127.0.0.1", port, true}),
          behind_(behind) {}

    void check(const StreamPart& part) const {
        if (part.sources() != sources_)
            throw std::invalid_argument("the streams of two rates have other sources; expected more frames");
    }

    void run(StreamPart& part, const Schedule& schedule) {
        const std::uint64_t before = sent_.frames;
        const double end = schedule.ticks();
        pass_ = next_ = 0;
        std::this_thread::sleep_until(schedule.start);
        while (true) {
            const double from = static_cast<double>(pass_) * static_cast<double>(schedule.period);
            const double next = from + static_cast<double>(part.due(next_));
            if (next >= end) break;
            const SendClock::time_point now = SendClock::now();
            const double elapsed = schedule.elapsed(now);
            if (elapsed > schedule.seconds * patience) break;
            const SendClock::time_point due = schedule.host_time(next) + burst;
            if (now < due) {
                std::this_thread::sleep_until(due);
                continue;
            }
            const double delay = elapsed - next / schedule.ticks_per_second;
            if (behind_ == Behind::leave_out && delay > leave_out_after) {
                go_to(part, schedule, elapsed);
                continue;
            }
            const double limit = std::min(elapsed * schedule.ticks_per_second, end);
            sent_.worst_delay_s = std::max(sent_.worst_delay_s, delay);
            send_until(part, schedule, static_cast<std::uint64_t>(limit - from));
        }
        sent_.phase_frames.push_back(sent_.frames - before);
    }

    Sent finish(const StreamPart& part, SendClock::time_point start) {
        sent_.seconds = config::seconds_since(start);
        for (const std::vector<std::byte>& datagram : part.ends(next_number_)) {
            const std::span<const std::byte> payload = datagram;
            sender_.send({&payload, 1});
            sent_.bytes += payload.size();
        }
        sent_.datagrams = sender_.datagrams_sent();
        sent_.cpu_seconds = {thread_cpu_seconds()};
        return sent_;
    }

  private:
    /// Goes to the first datagram that is due from now on.
    void go_to(const StreamPart& part, const Schedule& schedule, double elapsed) {
        const auto now = static_cast<std::uint64_t>(elapsed * schedule.ticks_per_second);
        pass_ = now / schedule.period;
        for (next_ = 0; next_ < part.size() && part.due(next_) < now % schedule.period;)
            ++next_;
        if (next_ == part.size()) {
            next_ = 0;
            ++pass_;
        }
    }

    /// Sends the datagrams of this pass that are due by then, at least one and not too many.
    void send_until(StreamPart& part, const Schedule& schedule, std::uint64_t due) {
        std::size_t count = 0;
        const std::size_t most = std::min(max_at_once, part.size() - next_);
        while (count < most && (count == 0 || part.due(next_ + count) <= due)) {
            sent_.frames += part.frames(next_ + count);
            sent_.bytes += part.payloads()[next_ + count].size();
            ++count;
        }
        part.stamp(next_, count, schedule.ticks_before + pass_ * schedule.period, next_number_);
        sender_.send(part.payloads().subspan(next_, count));
        next_ += count;
        if (next_ == part.size()) {
            next_ = 0;
            ++pass_;
        }
    }

    const std::vector<std::uint16_t> sources_;
    SequenceNumbers next_number_;
    net::Sender sender_;
    const Behind behind_;
    std::size_t next_ = 0;
    std::uint64_t pass_ = 0;
    Sent sent_;
};

void add(Sent& sum, const Sent& part) {
    sum.datagrams += part.datagrams;
    sum.frames += part.frames;
    sum.phase_frames.resize(part.phase_frames.size());
    for (std::size_t i = 0; i < part.phase_frames.size(); ++i)
        sum.phase_frames[i] += part.phase_frames[i];
    sum.bytes += part.bytes;
    sum.seconds = std::max(sum.seconds, part.seconds);
    sum.worst_delay_s = std::max(sum.worst_delay_s, part.worst_delay_s);
    sum.cpu_seconds.insert(sum.cpu_seconds.end(), part.cpu_seconds.begin(), part.cpu_seconds.end());
}

}  // namespace

Sent send(std::span<const Phase> phases, const std::vector<std::uint16_t>& ports, SendClock::time_point start,
          Behind behind) {
    const std::size_t parts = phases.front().stream->parts().size();
    std::vector<std::unique_ptr<PartSender>> senders;
    for (std::size_t i = 0; i < parts; ++i) {
        senders.push_back(
            std::make_unique<PartSender>(phases.front().stream->parts()[i], ports[i % ports.size()], behind));
        for (const Phase& phase : phases)
            senders.back()->check(phase.stream->parts()[i]);
    }
    const std::vector<Schedule> schedules = schedules_of(phases, start);
    std::vector<std::future<Sent>> running;
    running.reserve(parts);
    for (std::size_t i = 0; i < parts; ++i) {
        running.push_back(std::async(std::launch::async, [&, i] {
            for (std::size_t k = 0; k < phases.size(); ++k)
                senders[i]->run(phases[k].stream->parts()[i], schedules[k]);
            return senders[i]->finish(phases.back().stream->parts()[i], start);
        }));
    }
    Sent sum;
    for (std::future<Sent>& one : running)
        add(sum, one.get());
    return sum;
}

}  // namespace petacq::bench

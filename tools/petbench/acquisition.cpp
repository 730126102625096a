// The acquisition thread alone: batches of made-up datagrams in, a pipeline that takes no time.
#include <atomic>
#include <cstdio>
#include <deque>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/acquisition/acquisition.hpp"
#include "net/receive/receiver.hpp"
#include "tools/petbench/base/measure.hpp"
#include "tools/petbench/base/suites.hpp"

namespace petacq::bench {
namespace {

constexpr std::uint32_t frames_per_datagram = 91;  // 1472 bytes
constexpr std::size_t datagram_bytes = 1472;
constexpr std::uint64_t ticks_per_ms = 1'000'000;  // ticks of a nanosecond
/// 48 modules of 900 crystals.
constexpr std::uint32_t modules = 48;
config::Geometry mouse_geometry() {
    return {6, {.y = 2, .z = 4}, {.y = 2, .z = 2}, {.y = 15, .z = 15}, modules, 4, 256};
}

/// Gives back every slice at once, without results.
class NoPipeline final : public gpu::Pipeline {
  public:
    [[nodiscard]] std::size_t depth() const override { return 4; }
    void submit(const gpu::Slice& slice) override { slices_.push_back({slice.id, slice.ends_interval}); }
    bool collect(gpu::SliceResult& result, bool /*wait*/) override {
        if (slices_.empty()) return false;
        result.id = slices_.front().id;
        if (slices_.front().ends_interval) result.sums = none_;
        slices_.pop_front();
        return true;
    }
    void histograms(gpu::SinglesHistograms& /*out*/) override {}
    void take_spectra(config::Spectra& /*out*/) override {}
    void unit_spectra(std::uint32_t /*unit*/, gpu::UnitSpectra& /*out*/) override {}
    void reset() override {}
    void set_calibration(const config::Calibration& /*calibration*/) override {}
    [[nodiscard]] std::uint64_t memory_bytes() const override { return 0; }
    [[nodiscard]] std::string description() const override { return "none"; }

  private:
    struct Submitted {
        std::uint64_t id;
        bool ends_interval;
    };
    const gpu::IntervalSums none_ = gpu::IntervalSums::none(mouse_geometry());
    std::deque<Submitted> slices_;
};

/// Fills the lanes in turn with reads of `datagrams_per_read` datagrams, each from one source.
class Boards {
  public:
    Boards(const AcquisitionSuite& suite, net::BatchPool& pool, net::BatchQueue& queue)
        : suite_(suite), pool_(pool), queue_(queue), current_(suite.sockets), sequence_(suite.sources) {}

    /// Fills the whole pool. Returns the number of datagrams.
    std::uint64_t fill() {
        std::uint64_t sent = 0;
        while (read(source_)) {
            sent += suite_.datagrams_per_read;
            source_ = (source_ + 1) % suite_.sources;
        }
        for (std::size_t lane = 0; lane < suite_.sockets; ++lane) {
            if (current_[lane] != nullptr) queue_.lane(lane).finish(*std::exchange(current_[lane], nullptr));
            queue_.lane(lane).advance(arrival_ns_);
        }
        return sent;
    }
    /// Nothing arrives for a while: the slice in hand is submitted.
    void pause() {
        arrival_ns_ += 100'000'000;
        for (std::size_t lane = 0; lane < suite_.sockets; ++lane)
            queue_.lane(lane).advance(arrival_ns_);
    }
    [[nodiscard]] std::int64_t arrival_ns() const { return arrival_ns_; }

  private:
    /// False when no batch is free.
    bool read(std::size_t source) {
        const std::size_t lane = source % suite_.sockets;
        net::Batch*& batch = current_[lane];
        if (batch != nullptr && batch->used + suite_.datagrams_per_read * datagram_bytes > batch->capacity) {
            queue_.lane(lane).finish(*batch);
            batch = nullptr;
        }
        if (batch == nullptr) batch = pool_.take();
        if (batch == nullptr) return false;
        arrival_ns_ += 100;
        for (std::size_t i = 0; i < suite_.datagrams_per_read; ++i) {
            net::Datagram d;
            d.sequence = sequence_[source]++;
            d.first_time = 1000 * ticks_per_ms + d.sequence * ticks_per_datagram();
            d.last_time = d.first_time + ticks_per_datagram() - 1;
            d.arrival_ns = arrival_ns_;
            d.offset = static_cast<std::uint32_t>(batch->used + datagram_bytes % 16 + 16);
            d.frames = d.timed_frames = frames_per_datagram;
            d.bytes = datagram_bytes;
            d.address = 0x0A000001 + static_cast<std::uint32_t>(source);
            d.source = static_cast<std::uint16_t>(source + 1);
            d.first_bdm = d.last_bdm = static_cast<std::uint16_t>(source % modules);
            write_frame(d, d.first_time, batch->data + d.offset);
            write_frame(d, d.last_time,
                        batch->data + d.offset + (frames_per_datagram - 1) * net::frame_bytes);
            batch->used += datagram_bytes;
            batch->datagrams.push_back(d);
            batch->join_last();
        }
        queue_.lane(lane).publish(*batch);
        return true;
    }
    static void write_frame(const net::Datagram& d, std::uint64_t time, std::byte* to) {
        net::Frame frame{};
        frame.head_marker = net::default_head_marker;
        frame.tail_marker = net::default_tail_marker;
        frame.bdm = d.first_bdm;
        frame.time = time;
        net::encode_frame(frame, to, net::FrameVersion::one);
    }
    [[nodiscard]] std::uint64_t ticks_per_datagram() const {
        return std::uint64_t{20} * frames_per_datagram * suite_.sources;  // 50 M frames per second
    }

    const AcquisitionSuite& suite_;
    net::BatchPool& pool_;
    net::BatchQueue& queue_;
    std::vector<net::Batch*> current_;
    std::vector<std::uint64_t> sequence_;
    std::size_t source_ = 0;
    std::int64_t arrival_ns_ = 1;
};

/// Processor time of the acquisition for a datagram, in ns.
double measure(const AcquisitionSuite& suite) {
    net::BatchPool pool(suite.batch_count, suite.batch_bytes, net::make_host_memory({false, false}));
    net::BatchQueue queue(suite.sockets, suite.batch_count);
    const net::ReceiverCounters counters;
    daemon::AcquisitionOptions options;
    options.geometry = mouse_geometry();
    options.frames.bdm_count = options.geometry.bdm_count;
    options.frames.du_count = static_cast<std::uint16_t>(options.geometry.du_count);
    options.frames.position_size = static_cast<std::uint16_t>(options.geometry.position_size);
    options.slice_frames = suite.slice_frames;
    options.slice_interval = std::chrono::milliseconds(20);
    daemon::TrackerOptions tracker;
    for (std::size_t i = 0; i < suite.sources; ++i)
        tracker.expected.push_back(static_cast<std::uint16_t>(i + 1));
    options.max_disorder = tracker.max_disorder = 10 * ticks_per_ms;
    options.second = 1000 * ticks_per_ms;
    tracker.max_lag = 1000 * ticks_per_ms;
    tracker.max_jump = 2000 * ticks_per_ms;
    tracker.ticks_per_ns = 1;
    tracker.source_timeout_ns = 500'000'000;
    daemon::Acquisition acquisition(options, tracker, std::make_unique<NoPipeline>(), pool, queue,
                                    {&counters}, [](const daemon::FinishedRun&) {});
    Boards boards(suite, pool, queue);
    double cpu = 0;
    std::uint64_t sent = 0;
    while (sent < static_cast<std::uint64_t>(suite.millions * 1e6)) {
        // Another thread, so that the datagrams come from the cache of another core.
        std::jthread([&] { sent += boards.fill(); }).join();
        const double before = thread_cpu_seconds();
        while (queue.taken_until_ns() < boards.arrival_ns())
            acquisition.turn();
        cpu += thread_cpu_seconds() - before;
        while (pool.free_count() < pool.count()) {
            boards.pause();
            acquisition.turn();
        }
    }
    const auto lost = acquisition.snapshot()->total.datagrams.lost;
    if (lost != 0) throw std::logic_error(std::to_string(lost) + " datagrams counted as lost");
    return cpu * 1e9 / static_cast<double>(sent);
}

}  // namespace

void run(const AcquisitionSuite& suite) {
    std::printf("%zu sources on %zu sockets, %zu datagrams of %u frames in a read, slices of %u frames\n",
                suite.sources, suite.sockets, suite.datagrams_per_read, frames_per_datagram,
                suite.slice_frames);
    std::vector<double> ns;
    ns.reserve(static_cast<std::size_t>(suite.repetitions));
    for (int i = 0; i < suite.repetitions; ++i)
        ns.push_back(measure(suite));
    const double typical = median(ns);
    std::printf(
        "acquisition thread: %.1f ns of processor time per datagram: at most %.1f M datagrams/s, %.0f M "
        "frames/s\n",
        typical, 1e3 / typical, 1e3 * frames_per_datagram / typical);
}

}  // namespace petacq::bench

#include "daemon/acquisition/acquisition.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "net/base/thread.hpp"

namespace petacq::daemon {

namespace {

using Clock = std::chrono::steady_clock;

/// A turn takes datagrams until it has taken this many: small pieces must not cost a turn each.
constexpr std::size_t datagrams_per_turn = 4096;

/// How long a turn waits for datagrams while many frames wait to be submitted, or some to be collected.
constexpr std::chrono::microseconds busy_poll_interval{250};

/// How long it waits otherwise. Nothing wakes this thread when datagrams have come that do not fill a batch.
std::chrono::microseconds idle_poll_interval(const AcquisitionOptions& options) {
    return std::clamp<std::chrono::microseconds>(options.slice_interval / 4, std::chrono::milliseconds(1),
                                                 std::chrono::milliseconds(5));
}

}  // namespace

Acquisition::Acquisition(const AcquisitionOptions& options, const TrackerOptions& tracker,
                         std::unique_ptr<gpu::Pipeline> pipeline, net::BatchPool& pool,
                         net::BatchQueue& filled, std::vector<const net::ReceiverCounters*> receivers,
                         std::function<void(FinishedRun)> on_finished)
    : options_(options),
      batches_(pool, filled),
      feed_(std::move(pipeline), options.max_undecided(), batches_, statistics_.progress),
      flow_(options, tracker, feed_, batches_, std::move(receivers),
            [this](CollectedSlice& slice) { runs_.account(slice); }),
      runs_(
          options, tracker, feed_, flow_, batches_,
          [this](const SecondsView& seconds) {
              if (board_.publish(seconds) && on_second_) on_second_();
          },
          [this, on_finished = std::move(on_finished)](FinishedRun run) {
              publish(false);
              on_finished(std::move(run));
          }),
      steps_(options.second) {
    publish(true);
    if (feed_.failed()) throw std::runtime_error(feed_.failure());
}

Acquisition::~Acquisition() {
    stop();
}

void Acquisition::start() {
    commands_.run_all();  // a run that waits for data must start before they arrive
    const net::OnCores placed(options_.cores);
    thread_ = net::start_thread("acquisition", [this](const std::stop_token& stopping) { loop(stopping); });
}

void Acquisition::stop() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
}

void Acquisition::begin_run(std::unique_ptr<Run> run, const RequestedInterval& interval,
                            std::function<void()> started, std::function<void()> waiting) {
    // std::function must be copyable.
    auto shared = std::make_shared<std::unique_ptr<Run>>(std::move(run));
    commands_.post([this, shared, interval, started = std::move(started), waiting = std::move(waiting)] {
        const auto publish_start = [this, started] {
            publish(false);
            started();
        };
        runs_.begin(std::move(*shared), interval, publish_start, now_ns_);
        if (waiting) waiting();
    });
}

void Acquisition::end_run(std::string reason, std::optional<std::uint64_t> stop_ticks,
                          Clock::time_point given) {
    const std::int64_t given_ns = std::chrono::nanoseconds(given.time_since_epoch()).count();
    commands_.post([this, reason = std::move(reason), stop_ticks, given_ns] {
        runs_.ask_to_stop(reason, stop_ticks, given_ns);
    });
}

void Acquisition::set_calibration(std::shared_ptr<const config::Calibration> calibration,
                                  std::uint64_t max_offset, std::function<void(std::string failure)> done) {
    commands_.post([this, calibration = std::move(calibration), max_offset, done = std::move(done)] {
        done(runs_.set_calibration(*calibration, max_offset));
    });
}

void Acquisition::loop(const std::stop_token& stopping) {
    while (!stopping.stop_requested()) {
        try {
            turn();
        } catch (const std::exception& e) {
            feed_.fail(e.what());
            runs_.check_pipeline();
        }
    }
    runs_.end_at_once("daemon stopped");
    flow_.collect_all();
    flow_.give_back_batches();
    runs_.wait_for_seconds();
    publish(false);
}

void Acquisition::turn() {
    // Nor when a slice is ready.
    const bool busy = !feed_.empty() || flow_.has_many_frames();
    std::optional<net::DatagramSpan> piece =
        batches_.take(busy ? busy_poll_interval : idle_poll_interval(options_));
    statistics_.busy.start();
    statistics_.progress.turns.add();
    for (std::size_t taken = 0; piece; piece = batches_.take()) {
        take(*piece);
        taken += net::count_of(piece->datagrams);
        if (taken >= datagrams_per_turn) break;
    }
    if (!piece && !batches_.ended()) advance(batches_.taken_until_ns());
    // Host time may stand until a receiver gets a batch: the slice does not wait for more frames then.
    if (!piece && batches_.awaited()) runs_.cut_slice(now_ns_);
    runs_.advance_limits(now_ns_);
    commands_.run_all();
    while (flow_.collect()) {
    }
    runs_.check_pipeline();
    runs_.check_detector_time(now_ns_);
    runs_.check_run(now_ns_);
    if (options_.replay && !piece && batches_.ended()) runs_.end_input(end_of_capture, now_ns_);
    const Clock::time_point now = Clock::now();
    if (board_.due(now)) {
        // No run needs the present time.
        if (runs_.none() && flow_.time().deserted(now_ns_)) flow_.restart_time(now_ns_);
        publish(board_.histograms_due(now));
    }
    statistics_.busy.stop();
}

void Acquisition::take(const net::DatagramSpan& piece) {
    std::uint64_t newest = 0;
    net::each_group(*piece.batch, piece.datagrams, [&](const net::Group& group) {
        const net::Datagram& first = group.trains().front();
        if (first.arrival_ns > now_ns_) advance(first.arrival_ns);
        batches_.reading(first.trains);
        newest = std::max(newest, take(*piece.batch, group));
    });
    // The packets of a replay have no arrival from which a latency could be measured.
    if (newest != 0 && !options_.replay) runs_.arrived(piece.datagrams.front().arrival_ns, newest);
    batches_.read_completely();
    if (piece.last) flow_.keep(piece.batch);
    if (!flow_.full()) return;
    runs_.cut_slice(now_ns_);
    runs_.check_detector_time(now_ns_);
}

/// Takes a group. Returns the newest believed time in it, 0 for none.
std::uint64_t Acquisition::take(const net::Batch& batch, const net::Group& group) {
    std::uint64_t newest = 0;
    for (const net::Datagram& train : group.trains())
        newest = std::max(newest, train.datagrams == 1 ? train.last_time : train.end_last_time);
    if (!(options_.replay && steps_.would_end(newest)) && flow_.add_group(group, now_ns_)) {
        after_datagram(0);
        return newest;
    }
    newest = 0;
    group.each([&](const net::Datagram& datagram) {
        const std::uint64_t time = flow_.add(batch, datagram, now_ns_);
        newest = std::max(newest, time);
        after_datagram(time);
    });
    return newest;
}

/// `step`: a time that may end a step of a replay; 0: none.
void Acquisition::after_datagram(std::uint64_t step) {
    if (flow_.full()) runs_.cut_slice(now_ns_);
    if (options_.replay && step != 0 && steps_.ends_step(step))
        runs_.cut_slice(now_ns_, RunControl::Cut::step);
    if (flow_.time().went_back() != DetectorTime::Back::no) runs_.check_detector_time(now_ns_);
}

/// Host time goes on: everything that arrived before has been read.
void Acquisition::advance(std::int64_t host_ns) {
    if (host_ns <= now_ns_) return;
    now_ns_ = host_ns;
    if (flow_.old(now_ns_)) runs_.cut_slice(now_ns_);
}

void Acquisition::publish(bool with_histograms) {
    auto s = std::make_shared<AcquisitionSnapshot>();
    if (with_histograms) {
        auto histograms = std::make_shared<gpu::SinglesHistograms>();
        if (feed_.histograms(*histograms)) s->histograms = std::move(histograms);
        s->histograms_taken = Clock::now();
        spectra_.refresh(feed_);
    }
    flow_.describe(*s, now_ns_);
    s->busy_s = statistics_.busy.seconds(s->taken);
    runs_.describe(*s);
    // Only the runs know the records written.
    s->total.pairs = {};
    s->total.saved_singles = {};
    s->total.triples = {};
    s->total.tags.found = 0;
    board_.publish(std::move(s));
}

}  // namespace petacq::daemon

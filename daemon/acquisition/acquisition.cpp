#include "daemon/acquisition/acquisition.hpp"

#include <pthread.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "daemon/tracking/saturate.hpp"

namespace petacq::daemon {

namespace {

using Clock = std::chrono::steady_clock;

/// How long a turn waits for a batch.
std::chrono::milliseconds poll_interval(const AcquisitionOptions& options) {
    return std::clamp<std::chrono::milliseconds>(options.slice_interval / 2, std::chrono::milliseconds(1),
                                                 std::chrono::milliseconds(5));
}

/// No source is sending.
bool quiet(const TrackerStatus& sources) {
    return std::all_of(sources.sources.begin(), sources.sources.end(), [](const SourceStatus& s) {
        return s.state == SourceState::silent || s.state == SourceState::ended;
    });
}

}  // namespace

Acquisition::Acquisition(const AcquisitionOptions& options, const TrackerOptions& tracker,
                         std::unique_ptr<gpu::Pipeline> pipeline, net::BatchPool& pool,
                         net::BatchQueue& filled, std::vector<const net::ReceiverCounters*> receivers,
                         std::function<void(FinishedRun)> on_finished)
    : options_(options),
      on_finished_(std::move(on_finished)),
      clock_(options.replay_clock != nullptr ? HostClock(*options.replay_clock, options.second)
                                             : HostClock(options.receive_delay)),
      batches_(pool, filled),
      flow_(options, tracker, std::move(pipeline), batches_, std::move(receivers), statistics_.progress,
            [this](const CollectedSlice& slice) { account(slice); }),
      run_(add_or_max(tracker.max_offset, tracker.flush_reach)) {
    publish(true);
    if (flow_.pipeline().failed()) throw std::runtime_error(flow_.pipeline().failure());
}

Acquisition::~Acquisition() {
    stop();
}

void Acquisition::start() {
    commands_.run_all();  // a run that waits for data must start before they arrive
    thread_ = std::jthread([this](const std::stop_token& stopping) { loop(stopping); });
    pthread_setname_np(thread_.native_handle(), "acquisition");
}

void Acquisition::stop() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
}

void Acquisition::begin_run(std::unique_ptr<Run> run, const RequestedInterval& interval,
                            std::function<void()> started) {
    // std::function must be copyable.
    auto shared = std::make_shared<std::unique_ptr<Run>>(std::move(run));
    commands_.post([this, shared, interval, started = std::move(started)] {
        prepare_run(std::move(*shared), interval, started);
    });
}

void Acquisition::end_run(std::string reason) {
    commands_.post([this, reason = std::move(reason)] {
        run_.interval.ask_to_stop(reason, clock_.received_so_far_is_read_ns(),
                                  Clock::now() + options_.stop_timeout);
    });
}

void Acquisition::loop(const std::stop_token& stopping) {
    while (!stopping.stop_requested()) {
        try {
            turn();
        } catch (const std::exception& e) {
            flow_.pipeline().fail(e.what());
            check_pipeline();
        }
    }
    if (run_.interval.waiting()) start_run();
    if (run_.interval.running()) {
        run_.interval.set_reason("daemon stopped");
        finish_run();
    }
    flow_.collect_all();
    flow_.give_back_batches();
    publish(false);
}

void Acquisition::turn() {
    net::Batch* const batch = batches_.wait(poll_interval(options_));
    statistics_.busy.start();
    statistics_.progress.turns.add();
    if (batch != nullptr) {
        take_batch(batch);
    } else {
        clock_.queue_is_empty();
    }
    commands_.run_all();
    const Clock::time_point now = Clock::now();
    if (flow_.due(now)) process_slice();
    while (flow_.collect()) {
    }
    check_pipeline();
    check_run();
    if (board_.due(now)) {
        check_common_reset();
        publish(board_.histograms_due(now));
    }
    statistics_.busy.stop();
}

void Acquisition::take_batch(net::Batch* batch) {
    clock_.batch_arrived(batch->arrival_ns);
    std::uint64_t newest = 0;
    std::size_t read = 0;
    for (const net::Datagram& datagram : batch->datagrams) {
        batches_.reading(*batch, ++read);
        const std::optional<std::uint64_t> time = flow_.add(*batch, datagram, clock_.now_ns());
        newest = std::max(newest, time.value_or(0));
        if (flow_.full()) process_slice();
        if (time && clock_.ends_step(*time)) process_slice(Cut::step);
    }
    // The packets of a replay have no arrival from which a latency could be measured.
    if (newest != 0 && clock_.live()) run_.arrivals.add(batch->first_arrival_ns, newest);
    batches_.read_completely();
    flow_.keep(batch);
}

/// Submits the slice with the watermark that the sources allow. Starts or finishes the run whose start or
/// stop the watermark reaches.
void Acquisition::process_slice(Cut cut) {
    flow_.restart_interval();
    if (flow_.pipeline().failed()) return check_pipeline();
    const SliceFlow::Watermark next = flow_.next_watermark(clock_.now_ns());
    if (flow_.pipeline().failed()) return check_pipeline();  // while results were collected
    run_.interval.settle_duration(flow_.received().earliest(), next.ticks, options_.max_offset);
    SliceEnd end{next.ticks, run_.interval.close_at(next.ticks), {}};
    if (end.close_at || flow_.has_news(next.ticks)) {
        if (row_ends(end, cut)) end.row = flow_.total(Account::Reading::quick).datagrams;
        if (flow_.submit(end) && next.gives_up) ++statistics_.given_up;
        if (end.close_at && run_.interval.running()) {
            finish_run();
        } else if (end.close_at) {
            start_run();
        }
    }
    check_pipeline();
}

/// Whether the slice ends a row of the ledger over time. The last row ends with the run.
bool Acquisition::row_ends(const SliceEnd& end, Cut cut) {
    if (!run_.interval.running() || end.close_at || (!clock_.live() && cut != Cut::step)) return false;
    return run_.run->ledger_series().row_ends(end.watermark, flow_.received().earliest());
}

/// Hands the results of a slice to the run.
void Acquisition::account(const CollectedSlice& slice) {
    const std::span<const std::int64_t> decided = run_.arrivals.take_decided(slice.end.watermark);
    if (!run_.interval.running()) return;
    run_.run->append(slice.result);
    run_.run->mark(decided);
    if (!slice.end.row) return;
    // The datagrams as of the moment when the slice was cut: later ones belong to the next row.
    Ledger total = flow_.total(Account::Reading::quick);
    total.datagrams = *slice.end.row;
    run_.run->ledger_series().add(slice.end.watermark, total);
}

void Acquisition::publish(bool with_histograms) {
    auto s = std::make_shared<AcquisitionSnapshot>();
    if (with_histograms) {
        auto histograms = std::make_shared<gpu::SinglesHistograms>();
        if (flow_.pipeline().histograms(*histograms)) s->histograms = std::move(histograms);
        s->histograms_taken = Clock::now();
    }
    flow_.describe(*s, clock_.now_ns());
    s->busy_s = statistics_.busy.seconds(s->taken);
    s->given_up = statistics_.given_up;
    if (run_.interval.running()) {
        s->run = s->total - run_.at_start;
        run_.run->complete(*s->run);
    }
    // Only the runs know the records written.
    s->total.pairs = {};
    s->total.saved_singles = {};
    board_.publish(std::move(s));
}

void Acquisition::prepare_run(std::unique_ptr<Run> run, const RequestedInterval& interval,
                              std::function<void()> started) {
    const TrackerStatus sources = flow_.sources(clock_.now_ns());
    // The next stream may start at any detector time, also at an earlier one.
    if (quiet(sources)) flow_.restart_time();
    check_common_reset();
    // Data below the watermark belong to the time before the run.
    std::uint64_t start = std::max(flow_.next_watermark(clock_.now_ns()).ticks, interval.start.value_or(0));
    if (run->capture() != nullptr && !interval.start && flow_.received().newest() != 0) {
        // No datagram with times from here on has arrived: the capture will hold all of them.
        start = std::max(start, add_or_max(flow_.end_of_received(sources), options_.max_disorder));
    }
    batches_.start_capture(run->capture());
    run_.run = std::move(run);
    run_.started = std::move(started);
    run_.interval.wait(start, interval);
    process_slice();  // starts the run, unless the start lies ahead
}

/// The segment before the run has been closed, or the pipeline has failed.
void Acquisition::start_run() {
    flow_.collect_all();
    run_.at_start = flow_.total(Account::Reading::one_moment);
    run_.arrivals.clear();
    flow_.pipeline().restart_high_water();
    batches_.restart_low_water();
    run_.interval.start();
    run_.run->ledger_series().start(run_.interval.start_ticks(), options_.second, run_.at_start);
    flow_.pipeline().histograms(run_.histograms_at_start);
    publish(false);
    std::exchange(run_.started, {})();
}

/// A run ends with its pipeline. A waiting run does so, too, so that its operator gets an answer.
void Acquisition::check_pipeline() {
    if (!flow_.pipeline().failed()) return;
    flow_.submit({});  // returns the batches
    if (run_.interval.waiting()) start_run();
    if (run_.interval.running()) finish_run();
}

/// Ends the run when its files have failed or somebody has asked for it.
void Acquisition::check_run() {
    RunInterval& interval = run_.interval;
    if (interval.waiting() && interval.overdue(Clock::now())) {
        // No source brings the watermark to the start.
        flow_.close_segment(std::max(interval.start_ticks(), flow_.watermark()));
        start_run();
        check_pipeline();
    }
    if (!interval.running()) return;
    if (const std::string failure = run_.run->write_failure(); !failure.empty()) {
        interval.stop_now(failure, flow_.watermark());
        interval.fail(failure);
        flow_.close_segment(flow_.watermark());
        finish_run();
        return;
    }
    const Clock::time_point now = Clock::now();
    if (interval.wants_stop(clock_.now_ns(), now)) {
        interval.fix_stop(flow_.end_of_received(flow_.sources(clock_.now_ns())));
        process_slice();
    }
    if (!interval.running() || !interval.overdue(now)) return;
    log_warning(
        "run {}: the watermark did not reach the stop of the run in time; the run ends without waiting "
        "any longer",
        run_.run->id());
    flow_.close_segment(std::max(interval.stop_ticks(flow_.watermark()), flow_.watermark()));
    finish_run();
}

/// The segment of the run has been closed, or the pipeline has failed.
void Acquisition::finish_run() {
    flow_.collect_all();
    FinishedRun finished;
    RunEnd& end = finished.end;
    end.start_ticks = run_.interval.start_ticks();
    end.stop_ticks = run_.interval.stop_ticks(flow_.watermark());
    end.data_ticks = run_.interval.data_ticks(end.stop_ticks, flow_.received().earliest());
    const Ledger at_end = flow_.total(Account::Reading::one_moment);
    end.ledger = at_end - run_.at_start;
    run_.run->ledger_series().add_last(end.stop_ticks, flow_.received().earliest(), at_end);
    if (flow_.pipeline().histograms(end.histograms)) end.histograms -= run_.histograms_at_start;
    if (flow_.pipeline().failed()) run_.interval.fail(flow_.pipeline().failure());
    end.reason = run_.interval.reason();
    end.failed = run_.interval.failed();
    batches_.stop_capture();
    finished.run = std::move(run_.run);
    run_.interval.finish();
    publish(false);
    on_finished_(std::move(finished));
}

/// Detector time starts again if all boards were reset.
void Acquisition::check_common_reset() {
    if (flow_.pipeline().failed()) return;
    // A step back by less than max_lag needs nothing: the frames are late until the step is made up for.
    const TrackerStatus sources = flow_.sources(clock_.now_ns());
    if (!sources.behind_watermark || add_or_max(*sources.reference, options_.max_lag) >= flow_.watermark())
        return;
    if (run_.interval.running()) {
        // List-mode is in the order of time: data from now on cannot be part of this run.
        run_.interval.stop_now("the boards were reset: detector time went back", flow_.watermark());
        flow_.close_segment(flow_.watermark());
        finish_run();
    }
    log_limit_.log(LogLevel::warning, "reset",
                   "the sources agree on a time before the present watermark: detector time starts again");
    if (flow_.restart_time()) run_.interval.time_restarted();
}

}  // namespace petacq::daemon

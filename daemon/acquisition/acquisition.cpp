#include "daemon/acquisition/acquisition.hpp"

#include <pthread.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "daemon/tracking/saturate.hpp"

namespace petacq::daemon {

namespace {

using Clock = std::chrono::steady_clock;

/// A turn takes datagrams until it has taken this many: small pieces must not cost a turn each.
constexpr std::size_t datagrams_per_turn = 4096;

/// How long a turn waits for datagrams.
std::chrono::milliseconds poll_interval(const AcquisitionOptions& options) {
    return std::clamp<std::chrono::milliseconds>(options.slice_interval / 2, std::chrono::milliseconds(1),
                                                 std::chrono::milliseconds(5));
}

}  // namespace

Acquisition::Acquisition(const AcquisitionOptions& options, const TrackerOptions& tracker,
                         std::unique_ptr<gpu::Pipeline> pipeline, net::BatchPool& pool,
                         net::BatchQueue& filled, std::vector<const net::ReceiverCounters*> receivers,
                         std::function<void(FinishedRun)> on_finished)
    : options_(options),
      on_finished_(std::move(on_finished)),
      batches_(pool, filled),
      flow_(options, tracker, std::move(pipeline), batches_, std::move(receivers), statistics_.progress,
            [this](const CollectedSlice& slice) { account(slice); }),
      steps_(options.second),
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

void Acquisition::end_run(std::string reason, Clock::time_point given) {
    const std::int64_t given_ns = std::chrono::nanoseconds(given.time_since_epoch()).count();
    commands_.post([this, reason = std::move(reason), given_ns] {
        run_.interval.ask_to_stop(reason, given_ns, limits_.now() + options_.stop_timeout);
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
    std::optional<net::Piece> piece = batches_.take(poll_interval(options_));
    statistics_.busy.start();
    statistics_.progress.turns.add();
    for (std::size_t taken = 0; piece; piece = batches_.take()) {
        take(*piece);
        taken += piece->datagrams.size();
        if (taken >= datagrams_per_turn) break;
    }
    if (!piece && !batches_.ended()) advance(batches_.taken_until_ns());
    limits_.turn(now_ns_);
    commands_.run_all();
    while (flow_.collect()) {
    }
    check_pipeline();
    check_detector_time();
    check_run();
    if (options_.replay && !piece && batches_.ended()) end_input();
    const Clock::time_point now = Clock::now();
    if (board_.due(now)) {
        // No run needs the present time.
        if (run_.interval.none() && flow_.time_deserted(now_ns_)) flow_.restart_time();
        publish(board_.histograms_due(now));
    }
    statistics_.busy.stop();
}

void Acquisition::take(const net::Piece& piece) {
    std::uint64_t newest = 0;
    for (const net::Datagram& datagram : piece.datagrams) {
        advance(datagram.arrival_ns);
        batches_.reading();
        const std::optional<std::uint64_t> time = flow_.add(*piece.batch, datagram, now_ns_);
        newest = std::max(newest, time.value_or(0));
        if (flow_.full()) process_slice();
        if (options_.replay && time && steps_.ends_step(*time)) process_slice(Cut::step);
        check_detector_time();
    }
    // The packets of a replay have no arrival from which a latency could be measured.
    if (newest != 0 && !options_.replay) run_.arrivals.add(piece.datagrams.front().arrival_ns, newest);
    batches_.read_completely();
    if (piece.last) flow_.keep(piece.batch);
    if (flow_.keeps_too_many()) process_slice();
}

/// Host time goes on: everything that arrived before has been read.
void Acquisition::advance(std::int64_t host_ns) {
    if (host_ns <= now_ns_) return;
    now_ns_ = host_ns;
    // Until detector time begins, frames wait in the slice: the times of the first datagrams are judged then.
    if (!flow_.time_established()) return;
    if (now_ns_ - slice_started_ns_ >= std::chrono::nanoseconds(options_.slice_interval).count())
        process_slice();
}

/// Submits the slice with the watermark that the sources allow. Starts or finishes the run whose start or
/// stop the watermark reaches.
void Acquisition::process_slice(Cut cut) {
    slice_started_ns_ = now_ns_;
    if (flow_.pipeline().failed()) return check_pipeline();
    const SliceFlow::Watermark next = flow_.next_watermark(now_ns_);
    if (flow_.pipeline().failed()) return check_pipeline();  // while results were collected
    run_.interval.settle_duration(flow_.earliest(), next.ticks, options_.max_offset);
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
    if (!run_.interval.running() || end.close_at || (options_.replay && cut != Cut::step)) return false;
    return run_.run->ledger_series().row_ends(end.watermark, flow_.earliest());
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
    flow_.describe(*s, now_ns_);
    s->busy_s = statistics_.busy.seconds(s->taken);
    s->given_up = statistics_.given_up;
    if (run_.interval.running() && run_.run) {
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
    check_detector_time();
    // The next stream may start at any detector time, also at an earlier one.
    if (!flow_.time_supported(now_ns_)) {
        flow_.allow_repetition(now_ns_);
        flow_.restart_time();
    }
    // Data below the watermark belong to the time before the run.
    std::uint64_t start = std::max(flow_.next_watermark(now_ns_).ticks, interval.start.value_or(0));
    if (run->capture() != nullptr && !interval.start && flow_.newest() != 0) {
        // No datagram with times from here on has arrived: the capture will hold all of them.
        start = std::max(start, add_or_max(flow_.end_of_received(), options_.max_disorder));
    }
    batches_.start_capture(run->capture());
    run_.run = std::move(run);
    run_.started = std::move(started);
    run_.interval.wait(start, interval);
    if (!options_.replay) run_.interval.start_by(limits_.now() + options_.start_timeout);
    process_slice();  // starts the run, unless the start lies ahead
}

/// The segment before the run has been closed, or the pipeline has failed.
void Acquisition::start_run() {
    flow_.collect_all();
    flow_.mark_sources();
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
    if (interval.waiting() && interval.overdue(limits_.now())) {
        // No source brings the watermark to the start.
        flow_.close_segment(std::max(interval.start_ticks(), flow_.watermark()));
        start_run();
        check_pipeline();
    }
    if (interval.late(limits_.now())) return give_up_start();
    if (!interval.running()) return;
    if (const std::string failure = run_.run->write_failure(); !failure.empty()) {
        interval.stop_now(failure, flow_.watermark());
        interval.fail(failure);
        flow_.close_segment(flow_.watermark());
        finish_run();
        return;
    }
    // A receiver that has stopped for so long will not tell what arrived before the request.
    const bool stands = limits_.standing() >= options_.stop_timeout;
    if (interval.wants_stop(stands ? INT64_MAX : now_ns_)) {
        flow_.establish_time(now_ns_);
        interval.fix_stop(flow_.end_of_received(), limits_.now() + options_.stop_timeout);
        process_slice();
        if (interval.running() && !flow_.time_established()) {
            // Too few datagrams to know any source's time, and so no watermark: the run takes all of them.
            flow_.close_segment(std::max(interval.stop_ticks(flow_.watermark()), flow_.watermark()));
            finish_run();
            flow_.restart_time();
        }
    }
    if (!interval.running() || !interval.overdue(limits_.now())) return;
    log_warning(
        "run {}: the watermark did not reach the stop of the run in time; the run ends without waiting "
        "any longer",
        run_.run->id());
    flow_.close_segment(std::max(interval.stop_ticks(flow_.watermark()), flow_.watermark()));
    finish_run();
}

/// Detector time does not reach the start of a waiting run: the run ends without having started.
void Acquisition::give_up_start() {
    const std::uint64_t watermark = flow_.watermark();
    run_.started = [] {};
    run_.interval.start_now(watermark);
    flow_.close_segment(watermark);
    start_run();
    run_.interval.stop_now("", watermark);
    run_.interval.fail(
        "the run could not start: no source moves detector time past the frames received before it; check "
        "the clocks of the boards");
    finish_run();
}

/// Nothing will follow: everything there is has been read, and belongs to the run unless its stop excludes
/// it.
void Acquisition::end_input() {
    RunInterval& interval = run_.interval;
    if (interval.none()) return;
    flow_.establish_time(now_ns_);
    const std::uint64_t end = flow_.end_of_input();
    if (interval.waiting()) {
        flow_.close_segment(std::max(interval.start_ticks(), flow_.watermark()));
        start_run();
    }
    if (!flow_.pipeline().failed()) {
        interval.end_input(end_of_capture, end);
        flow_.close_segment(std::max(interval.stop_ticks(end), flow_.watermark()));
    }
    finish_run();
}

/// The segment of the run has been closed, or the pipeline has failed.
void Acquisition::finish_run() {
    flow_.collect_all();
    FinishedRun finished;
    RunEnd& end = finished.end;
    end.start_ticks = run_.interval.start_ticks();
    end.stop_ticks = run_.interval.stop_ticks(flow_.watermark());
    end.data_ticks = run_.interval.data_ticks(end.stop_ticks, flow_.earliest());
    const Ledger at_end = flow_.total(Account::Reading::one_moment);
    end.ledger = at_end - run_.at_start;
    run_.run->ledger_series().add_last(end.stop_ticks, flow_.earliest(), at_end);
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

/// Follows the sources when they agree on a time before the present one.
void Acquisition::check_detector_time() {
    if (flow_.pipeline().failed()) return;
    const SourceTracker::Back back = flow_.time_went_back();
    if (back != SourceTracker::Back::no) follow_reset(back);
}

/// List-mode is in the order of time: what comes before its records cannot be part of a run in progress.
void Acquisition::follow_reset(SourceTracker::Back back) {
    const bool common = back == SourceTracker::Back::common_reset;
    const auto has_records = [this] { return flow_.records_found() != Account::records_in(run_.at_start); };
    if (run_.interval.running() && !common) {
        // The time of a single sender has been replaced: only a common reset ends a run.
        if (has_records()) return;
        flow_.collect_all();
        if (has_records()) return;
    }
    const std::uint64_t end = flow_.end_of_received();
    if (run_.interval.running() && common) {
        // Everything from before the reset belongs to the run.
        run_.interval.stop_now("the boards were reset: detector time went back", end);
        flow_.close_segment(run_.interval.stop_ticks(end));
        finish_run();
    }
    log_limit_.log(LogLevel::warning, "reset",
                   "the sources agree on an earlier time than before: detector time starts again there");
    if (!flow_.follow_reset(now_ns_)) return check_pipeline();
    if (run_.interval.running() && has_records()) {
        run_.interval.stop_now("the time of a single source was replaced by that of others", end);
        return finish_run();
    }
    if (run_.interval.running()) run_.run->ledger_series().time_restarted();
    run_.interval.time_restarted();
}

}  // namespace petacq::daemon

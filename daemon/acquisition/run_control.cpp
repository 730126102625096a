#include "daemon/acquisition/run_control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "daemon/tracking/saturate.hpp"

namespace petacq::daemon {

RunControl::RunControl(const AcquisitionOptions& options, const TrackerOptions& tracker, PipelineFeed& feed,
                       SliceFlow& flow, BatchExchange& batches, SecondsThread::Listener on_seconds,
                       std::function<void(FinishedRun)> on_finished)
    : options_(options),
      feed_(feed),
      flow_(flow),
      batches_(batches),
      on_finished_(std::move(on_finished)),
      source_timeout_(tracker.source_timeout_ns),
      run_(add_or_max(tracker.max_offset, tracker.flush_reach)) {
    if (options.second == 0) return;
    seconds_.emplace(
        SecondsThread::Options{options.geometry, options.rules, options.second, options.reference},
        std::move(on_seconds));
}

void RunControl::begin(std::unique_ptr<Run> run, const RequestedInterval& interval,
                       std::function<void()> started, std::int64_t now_ns) {
    check_detector_time(now_ns);
    // The next stream may start at any detector time, also at an earlier one.
    if (!flow_.time().supported(now_ns)) {
        flow_.allow_repetition(now_ns);
        flow_.restart_time(now_ns);
    }
    // Data below the watermark belong to the time before the run.
    std::uint64_t earliest = std::max(flow_.next_watermark(now_ns).ticks, flow_.calibrated_from());
    if (run->capture() != nullptr && flow_.newest()) {
        // No datagram with times from here on has arrived: the capture will hold all of them.
        earliest = std::max(earliest, add_or_max(flow_.end_of_received(), options_.max_disorder));
    }
    const bool start_passed = interval.start && *interval.start < earliest;
    const bool stop_passed = interval.stop && *interval.stop <= earliest;
    // A failed pipeline has no watermark; the run then fails with it.
    if (!options_.replay && !feed_.failed() && (start_passed || stop_passed)) {
        return withdraw(std::move(run),
                        fmt::format("{} {} has passed: expected a time from {} ticks on",
                                    start_passed ? "start_ticks" : "stop_ticks",
                                    start_passed ? *interval.start : *interval.stop, earliest));
    }
    const std::uint64_t start = std::max(earliest, interval.start.value_or(0));
    batches_.start_capture(run->capture());
    run_.run = std::move(run);
    run_.started = std::move(started);
    run_.interval.wait(start, interval);
    flow_.watch_clock();
    flow_.cover_from(interval.covered_from.value_or(0));
    count_spectra();
    if (!options_.replay && !interval.start) run_.interval.start_by(limits_.now() + options_.start_timeout);
    cut_slice(now_ns);  // starts the run, unless the start lies ahead
}

/// The frames of the run count, by their own times. So the counts do not depend on where slices are cut, and
/// a replay of the run's capture gives the same ones.
void RunControl::count_spectra() {
    const RunInterval& interval = run_.interval;
    if (interval.none()) return feed_.count_spectra(std::nullopt);
    feed_.count_spectra(gpu::TickRange{interval.start_ticks(), interval.stop_ticks(UINT64_MAX)});
}

/// The run does not begin.
void RunControl::withdraw(std::unique_ptr<Run> run, const std::string& reason) {
    FinishedRun finished;
    finished.run = std::move(run);
    finished.end.reason = reason;
    finished.end.never_began = true;
    on_finished_(std::move(finished));
}

void RunControl::ask_to_stop(const std::string& reason, std::optional<std::uint64_t> stop_ticks,
                             std::int64_t given_ns) {
    if (run_.interval.waits_for_request()) {
        batches_.stop_capture();
        run_.interval = {};
        count_spectra();
        return withdraw(std::move(run_.run), reason + " before its start_ticks");
    }
    run_.interval.ask_to_stop(reason, stop_ticks, given_ns, limits_.now() + options_.stop_timeout);
}

std::string RunControl::set_calibration(const config::Calibration& calibration, std::uint64_t max_offset) {
    assert(none());
    std::string failure = flow_.set_calibration(calibration, max_offset);
    if (failure.empty()) run_.arrivals = UndecidedArrivals(add_or_max(max_offset, options_.flush_reach));
    return failure;
}

void RunControl::end_at_once(const std::string& reason) {
    if (run_.interval.waiting()) start_run();
    if (!run_.interval.running()) return;
    run_.interval.set_reason(reason);
    finish_run();
}

/// Everything there is has been read, and belongs to the run unless its stop excludes it.
void RunControl::end_input(const std::string& reason, std::int64_t now_ns) {
    RunInterval& interval = run_.interval;
    if (interval.none()) return;
    flow_.establish_time(now_ns);
    // If the sources do not agree on a time, their frames are time jumps, as when a run is stopped.
    if (!flow_.time().established()) flow_.start_slice(now_ns);
    const std::uint64_t end = flow_.end_of_input();
    if (interval.waiting()) start_overdue_run();
    if (!feed_.failed()) {
        interval.end_input(reason, end, options_.flush_reach);
        close_segment(interval.stop_ticks(end));
    }
    finish_run();
}

void RunControl::cut_slice(std::int64_t now_ns, Cut cut) {
    flow_.start_slice(now_ns);
    const SliceFlow::SliceWatermark next = flow_.next_watermark(now_ns);
    if (!feed_.failed()) submit_slice(next, cut);
    check_pipeline();
}

void RunControl::submit_slice(SliceFlow::SliceWatermark next, Cut cut) {
    const std::uint64_t begin = flow_.data_begin(next.ticks);
    if (begin != UINT64_MAX || run_.interval.close_at(next.ticks)) {
        leave_out_before_data(run_.interval.stop_ticks(next.ticks));
    } else if (may_have_data_before(flow_.data_begin_so_far()) && flow_.more_may_wait()) {
        next.ticks = feed_.watermark();  // nothing is decided until it is known what is left out
    }
    begin_data(begin);
    count_spectra();
    SliceEnd end{next.ticks, run_.interval.close_at(next.ticks), {}};
    if (!end.close_at && !flow_.has_news(next.ticks)) return;
    if (end.close_at) end.watermark = std::max(*end.close_at, feed_.watermark());
    if (row_ends(end, cut)) end.row = flow_.total(Account::ReadingMode::quick).datagrams;
    if (flow_.submit(end) && next.gives_up) ++given_up_;
    if (!end.close_at) return;
    if (run_.interval.running()) {
        finish_run();
    } else {
        start_run();
    }
    if (!feed_.failed()) submit_slice(next, cut);
}

/// Whether the slice ends a row of the ledger over time. The last row ends with the run.
bool RunControl::row_ends(const SliceEnd& end, Cut cut) {
    if (!run_.interval.running() || end.close_at || (options_.replay && cut != Cut::step)) return false;
    return run_.run->ledger_series().row_ends(end.watermark, run_.interval.data_begin().value_or(UINT64_MAX));
}

void RunControl::account(CollectedSlice& slice) {
    const std::span<const std::int64_t> decided = run_.arrivals.take_decided(slice.end.watermark);
    late_ += slice.result.frames.late;
    if (slice.end.second && seconds_) measure(slice);
    if (!run_.interval.running()) return;
    if (options_.tap != nullptr) options_.tap->offer(slice.result);
    run_.run->append(slice.result);
    run_.run->mark(decided);
    if (!slice.end.row) return;
    // The datagrams as of the moment when the slice was cut: later ones belong to the next row.
    Ledger total = flow_.total(Account::ReadingMode::quick);
    total.datagrams = *slice.end.row;
    run_.run->ledger_series().add(slice.end.watermark, total);
}

void RunControl::measure(CollectedSlice& slice) {
    // A second without ticks has no record. The next one counts the frames that came late in it.
    if (slice.end.second->ticks() == 0) return;
    BoardReport report = flow_.report_on(*slice.end.second);
    report.late = std::exchange(late_, 0);
    // A replay knows the synchrony as of now.
    seconds_->add(*slice.end.second, slice.result.sums, std::move(report),
                  options_.synchrony != nullptr ? options_.synchrony->report() : nullptr);
}

void RunControl::check_seconds() {
    if (!seconds_) return;
    if (const std::string failure = seconds_->failure(); !failure.empty())
        feed_.fail("a second could not be measured: " + failure);
}

void RunControl::wait_for_seconds() {
    if (seconds_) seconds_->wait();
}

/// UINT64_MAX: not yet.
void RunControl::begin_data(std::uint64_t ticks) {
    const auto known = run_.interval.data_begin();
    if (!run_.interval.running() || ticks == UINT64_MAX || (known && ticks <= *known)) return;
    run_.interval.begin_data(ticks);
    std::optional<Run::Arrival> arrival;
    if (const auto at = flow_.arrival()) arrival = Run::Arrival{at->time, at->host_ns};
    run_.run->begin_data(*run_.interval.data_begin(), arrival, run_.interval.start_ticks());
}

/// Whether a run that waits for its data may get records from before this time, at which they begin.
/// `begin`: nullopt: no data yet.
bool RunControl::may_have_data_before(const std::optional<std::uint64_t>& begin) const {
    return run_.interval.waits_for_data() && begin && *begin > run_.interval.start_ticks() &&
           flow_.has_frames_before(*begin);
}

/// The run, which stops at `stop` at the latest, covers no time from before its data begin. So what came from
/// there is not in it either, nor in its ledger, but for its datagrams: the run starts where they begin.
void RunControl::leave_out_before_data(std::uint64_t stop) {
    const std::uint64_t begin = std::min(flow_.data_begin_so_far().value_or(stop), stop);
    if (feed_.failed() || !may_have_data_before(begin)) return;
    flow_.collect_all();
    if (has_records()) return;
    const std::uint64_t start = std::max(begin, feed_.watermark());
    run_.interval.wait_until(start);
    count_spectra();
    flow_.close_segment(start);
    flow_.collect_all();
    run_.interval.start();
    Ledger total = flow_.total(Account::ReadingMode::quick);
    if (total.singles.decided == run_.at_start.singles.decided && total.gammas == run_.at_start.gammas &&
        total.tags.ordered == run_.at_start.tags.ordered)
        return;
    const DatagramLedger now = std::exchange(total.datagrams, run_.at_start.datagrams);
    total.datagrams.frames = now.frames;
    total.datagrams.frames_in_flight_at_end = now.frames_in_flight_at_end;
    run_.at_start = total;
    run_.run->ledger_series().start(start, options_.second, total);
    feed_.histograms(run_.histograms_at_start);
}

/// From the first data, or the start if boards were sending then, to the stop or the end of what has arrived.
gpu::TickRange RunControl::covered(std::uint64_t stop) const {
    const std::uint64_t begin = run_.interval.data_begin().value_or(stop);
    const std::uint64_t end = std::min(stop, flow_.data_end());
    return {std::min(begin, stop), std::max(std::min(begin, stop), end)};
}

/// The segment before the run has been closed, or the pipeline has failed.
void RunControl::start_run() {
    flow_.collect_all();
    flow_.mark_sources();
    run_.at_start = flow_.total(Account::ReadingMode::one_moment);
    run_.seen = {};
    run_.seen.sources_at_start = flow_.sources(limits_.host_ns());
    given_up_at_start_ = given_up_;
    run_.arrivals.clear();
    feed_.restart_high_water();
    batches_.restart_low_water();
    run_.interval.start();
    flow_.watch_data(run_.interval.start_ticks(), limits_.host_ns());
    if (options_.tap != nullptr) options_.tap->begin_run(run_.run->id());
    if (seconds_) seconds_->start_run(run_.run->seconds(), run_.interval.start_ticks());
    run_.run->ledger_series().start(run_.interval.start_ticks(), options_.second, run_.at_start);
    feed_.histograms(run_.histograms_at_start);
    std::exchange(run_.started, {})();
}

/// No source brings the watermark to the start.
void RunControl::start_overdue_run() {
    flow_.close_segment(std::max(run_.interval.start_ticks(), feed_.watermark()));
    start_run();
}

/// Detector time does not reach the start of a waiting run: the run ends without having started.
void RunControl::give_up_start() {
    const std::uint64_t watermark = feed_.watermark();
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

void RunControl::check_pipeline() {
    check_seconds();
    if (!feed_.failed()) return;
    flow_.submit({});  // returns the batches
    if (run_.interval.waiting()) start_run();
    if (run_.interval.running()) finish_run();
}

void RunControl::check_run(std::int64_t now_ns) {
    RunInterval& interval = run_.interval;
    if (interval.waiting() && interval.overdue(limits_.now())) {
        start_overdue_run();
        check_pipeline();
    }
    if (interval.late(limits_.now())) return give_up_start();
    if (!interval.running()) return;
    if (const std::string failure = run_.run->write_failure(); !failure.empty()) {
        interval.stop_now(failure, feed_.watermark());
        interval.fail(failure);
        return close_run();
    }
    // After this time a stopped receiver is not expected to tell what arrived before the request.
    const bool stands = limits_.standing() >= options_.stop_timeout;
    if (interval.wants_stop(stands ? INT64_MAX : now_ns)) stop_as_asked(now_ns);
    if (!interval.running() || !interval.overdue(limits_.now())) return;
    if (!flow_.time().established()) {
        // Too few datagrams to know any source's time: the run takes all of them.
        close_run();
        flow_.restart_time(now_ns);
        return;
    }
    log_warning(
        "run {}: the watermark did not reach the stop of the run in time; the run ends without waiting "
        "any longer",
        run_.run->id());
    close_run();
}

/// Everything received before the request has been read: the run stops past it, or at the time asked for.
void RunControl::stop_as_asked(std::int64_t now_ns) {
    flow_.establish_time(now_ns);
    std::uint64_t stop = flow_.end_of_received();
    auto timeout = std::chrono::duration_cast<RunInterval::Clock::duration>(options_.stop_timeout);
    if (const auto asked = run_.interval.asked_stop()) {
        stop = std::max(*asked, feed_.watermark());
        if (options_.second > 0) {
            timeout += std::chrono::duration_cast<RunInterval::Clock::duration>(std::chrono::duration<double>(
                static_cast<double>(stop - feed_.watermark()) / static_cast<double>(options_.second)));
        }
    }
    // Without detector time there is no watermark. The run waits for it as long as for a silent board.
    if (!flow_.time().established()) {
        timeout =
            std::min(timeout, std::chrono::duration_cast<RunInterval::Clock::duration>(source_timeout_));
    }
    run_.interval.fix_stop(stop, limits_.now() + timeout);
    cut_slice(now_ns);
}

/// Ends the run at its stop, or at the watermark if that has passed it.
void RunControl::close_run() {
    close_segment(run_.interval.stop_ticks(feed_.watermark()));
    finish_run();
}

void RunControl::close_segment(std::uint64_t stop) {
    leave_out_before_data(stop);
    flow_.close_segment(std::max(stop, feed_.watermark()));
}

/// The segment of the run has been closed, or the pipeline has failed.
void RunControl::finish_run() {
    flow_.collect_all();
    if (options_.tap != nullptr) options_.tap->end_run();
    SecondsOfRun seconds = seconds_ ? seconds_->end_run() : SecondsOfRun{};
    check_seconds();
    FinishedRun finished;
    RunEnd& end = finished.end;
    const std::uint64_t stop = run_.interval.stop_ticks(feed_.watermark());
    if (const auto begin = flow_.data_begin_so_far(); begin && *begin < stop) begin_data(*begin);
    end.taken = {run_.interval.start_ticks(), stop};
    end.covered = covered(stop);
    const Ledger at_end = flow_.total(Account::ReadingMode::one_moment);
    end.ledger = at_end - run_.at_start;
    run_.run->ledger_series().add_last(end.covered.end, end.covered.start, at_end);
    end.seconds = seconds.total;
    end.live = seconds.live;
    end.seen = std::move(run_.seen);
    end.seen.detector = std::move(seconds.faults);
    end.seen.sources = flow_.sources(limits_.host_ns());
    end.seen.taken_from = end.taken.start;
    end.seen.given_up = given_up_ - given_up_at_start_;
    end.seen.live = end.live;
    if (feed_.histograms(end.histograms)) end.histograms -= run_.histograms_at_start;
    if (run_.run->counts_spectra()) {
        end.spectra = run_.run->take_spectra_memory();
        if (!feed_.take_spectra(end.spectra)) end.spectra = {};
    }
    if (feed_.failed()) run_.interval.fail(feed_.failure());
    end.reason = run_.interval.reason();
    end.failed = run_.interval.failed();
    batches_.stop_capture();
    finished.run = std::move(run_.run);
    run_.interval.finish();
    count_spectra();
    on_finished_(std::move(finished));
}

void RunControl::check_detector_time(std::int64_t now_ns) {
    if (feed_.failed()) return;
    const DetectorTime::Back back = flow_.time().went_back();
    if (back != DetectorTime::Back::no) follow_reset(back, now_ns);
}

/// List-mode is in the order of time: what comes before its records cannot be part of a run in progress.
void RunControl::follow_reset(DetectorTime::Back back, std::int64_t now_ns) {
    if (run_.interval.running() && back == DetectorTime::Back::common_reset) {
        // Everything from before the reset belongs to the run.
        run_.interval.stop_now("the boards were reset: detector time went back", flow_.end_of_received());
        close_run();
    } else if (run_.interval.running()) {
        // The time was that of a single source, which ends no run: a run with records continues in it.
        // So does one that has received everything up to its stop.
        if (!has_records()) flow_.collect_all();
        const std::uint64_t received = flow_.end_of_received();
        if (has_records() || run_.interval.stop_ticks(received) < received) return;
        flow_.close_segment(received);
        flow_.collect_all();
        if (has_records()) return;
    }
    log_limit_.log(LogLevel::warning, "reset",
                   "the sources agree on an earlier time than before: detector time starts again there");
    if (!flow_.follow_reset(now_ns)) return check_pipeline();
    run_.interval.time_restarted();
    if (!run_.interval.running()) return;
    run_.run->ledger_series().time_restarted();
    // Its seconds are those of a time that was none.
    run_.run->restart_data();
    if (seconds_) seconds_->start_run_again(run_.interval.start_ticks());
}

/// Whether the run in progress has coincidences, saved singles or tags. Seconds do not count: they are
/// discarded if detector time starts again.
bool RunControl::has_records() const {
    return flow_.records_found() != Account::records_in(run_.at_start);
}

void RunControl::describe(AcquisitionSnapshot& snapshot) const {
    snapshot.given_up = given_up_;
    if (options_.tap != nullptr) snapshot.tap = options_.tap->statistics();
    if (seconds_ && options_.synchrony != nullptr) snapshot.synchrony = options_.synchrony->report();
    if (!run_.interval.running() || !run_.run) return;
    snapshot.run_start = run_.interval.data_begin();
    snapshot.run = snapshot.total - run_.at_start;
    run_.run->complete(*snapshot.run);
}

}  // namespace petacq::daemon

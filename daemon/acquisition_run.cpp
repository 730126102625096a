// The part of the acquisition thread that begins, watches and ends runs.
#include <algorithm>
#include <limits>
#include <utility>

#include "daemon/acquisition.hpp"
#include "daemon/logging.hpp"
#include "daemon/saturate.hpp"

namespace petacq::daemon {

void Acquisition::begin(std::unique_ptr<Run> run, const RunInterval& interval, std::function<void()> begun) {
    // When nobody sends, the next stream may begin at any time, an earlier one included.
    const TrackerStatus sources = tracker_.status(now_ns_);
    const bool quiet =
        std::none_of(sources.sources.begin(), sources.sources.end(), [](const SourceStatus& s) {
            return s.state != SourceState::silent && s.state != SourceState::ended;
        });
    if (quiet) restart_time();
    restart_after_common_reset();
    // What is below the watermark belongs to the time before the run.
    know_what_waits();
    bool gives_up = false;
    std::uint64_t start = std::max(next_watermark(gives_up), interval.start.value_or(0));
    if (run->capture() != nullptr && !interval.start && newest_time_ != 0) {
        // Nothing from here on has come yet: the capture will hold it.
        start = std::max(start, add_or_max(end_of_what_came(sources), options_.max_disorder));
    }
    capture_ = run->capture();
    ActiveRun waiting;
    waiting.run = std::move(run);
    waiting.begun = std::move(begun);
    waiting.duration = interval.duration;
    waiting.start = start;
    waiting.stop = interval.stop;
    if (interval.stop) waiting.reason = "end of the interval";
    waiting_ = std::move(waiting);
    process_slice();  // enters, unless the start lies ahead
    if (waiting_ && !failure_.empty()) enter_run();
}

/// The segment before the run has been closed.
void Acquisition::enter_run() {
    collect_all();
    if (!waiting_) return;  // the pipeline failed while its last results were collected
    ActiveRun active = std::move(*waiting_);
    waiting_.reset();
    active.at_start = totals(Reading::one_moment);
    arrivals_.clear();
    pending_high_water_ = pending_;
    free_batches_low_water_ = pool_.free_count();
    // The duration counts from the first frame of the run.
    const std::function<void()> begun = std::move(active.begun);
    run_ = std::move(active);
    read_histograms(run_->histograms_at_start);
    publish(false);
    begun();
    if (!failure_.empty()) {
        run_->reason = failure_;
        run_->failed = true;
        finish_run();
    }
}

void Acquisition::ask_to_stop(const std::string& reason) {
    // A run that waits for its start ends as soon as it has begun.
    ActiveRun* const run = run_ ? &*run_ : waiting_ ? &*waiting_ : nullptr;
    if (run == nullptr || run->stop_asked_ns) return;
    run->reason = reason;
    // A replay is stopped when all has come; its clock may be far ahead by now.
    constexpr std::int64_t long_ago = std::numeric_limits<std::int64_t>::min() / 2;
    run->stop_asked_ns = options_.replay_clock != nullptr ? long_ago : host_ns();
    run->stop_deadline = Clock::now() + options_.stop_timeout;
}

/// To be called when no frame earlier than the earliest can come any more: else the end would depend on which
/// source was heard first.
void Acquisition::settle_duration() {
    if (!run_->duration || run_->stop || earliest_time_ == UINT64_MAX) return;
    run_->stop = add_or_max(std::max(run_->start, earliest_time_), *run_->duration);
}

/// Past every frame that has come and is believed: one wild frame must not prolong a run.
std::uint64_t Acquisition::end_of_what_came(const TrackerStatus& sources) const {
    std::uint64_t progress = 0;
    for (const SourceStatus& s : sources.sources)
        progress = std::max(progress, s.progress);
    const std::uint64_t newest = std::min(newest_time_, add_or_max(progress, options_.max_disorder));
    const std::uint64_t end = newest_time_ == 0 ? 0 : add_or_max(newest, options_.max_offset + 1);
    return std::max(end, watermark_);
}

void Acquisition::watch_run() {
    if (waiting_ && waiting_->stop_asked_ns && Clock::now() >= *waiting_->stop_deadline) {
        // Nobody sends what would bring the watermark to its start.
        process_slice(std::max(waiting_->start, watermark_));
        enter_run();
    }
    if (!run_) return;
    const std::string write_failure = run_->run->write_failure();
    if (!write_failure.empty()) {
        run_->reason = write_failure;
        run_->failed = true;
        run_->stop = watermark_;
        process_slice(watermark_);
        return;
    }
    if (!run_->stop_asked_ns) return;
    // What had arrived when the stop was asked for may still be on its way here from the receivers. A replay
    // is stopped when nothing is, and its clock stands still then.
    const std::int64_t settle =
        options_.replay_clock != nullptr
            ? 0
            : std::chrono::duration_cast<std::chrono::nanoseconds>(options_.receive_delay).count();
    const bool overdue = Clock::now() >= *run_->stop_deadline;
    if (!run_->stop_fixed && (overdue || now_ns_ >= *run_->stop_asked_ns + settle)) {
        const std::uint64_t end = end_of_what_came(tracker_.status(now_ns_));
        run_->stop = std::max(std::min(run_->stop.value_or(UINT64_MAX), end), run_->start);
        run_->stop_fixed = true;
        process_slice();
        if (!run_) return;
    }
    if (!overdue) return;
    log_warning(
        "run {}: the watermark did not reach the end of the run in time; ended without waiting further",
        run_->run->id());
    process_slice(std::max(*run_->stop, watermark_));
    if (run_) finish_run();
}

void Acquisition::finish_run() {
    if (failure_.empty()) collect_all();
    if (!run_) return;  // the pipeline failed while its last results were collected
    FinishedRun finished;
    finished.end.reason = run_->reason;
    finished.end.failed = run_->failed;
    finished.end.start_ticks = run_->start;
    finished.end.stop_ticks = std::max(run_->stop.value_or(watermark_), run_->start);
    const std::uint64_t first = std::max(finished.end.start_ticks, earliest_time_);
    finished.end.data_ticks = finished.end.stop_ticks > first ? finished.end.stop_ticks - first : 0;
    const Ledger total = totals(Reading::one_moment);
    finished.end.ledger = total - run_->at_start;
    begin_rows(finished.end.stop_ticks);
    run_->run->ledger_series().end(finished.end.stop_ticks, total);
    if (read_histograms(finished.end.histograms)) {
        finished.end.histograms -= run_->histograms_at_start;
    } else {
        finished.end.reason = failure_;
        finished.end.failed = true;
    }
    if (capture_ != nullptr && batch_ != nullptr) capture_->offer_part(*batch_, batch_seen_);
    capture_ = nullptr;
    finished.run = std::move(run_->run);
    run_.reset();
    publish(false);
    on_finished_(std::move(finished));
}

/// Rows of the ledger over time count from the first frame: a run may begin long before.
void Acquisition::begin_rows(std::uint64_t until) {
    if (run_->rows_from) return;
    run_->rows_from = std::clamp(earliest_time_, run_->start, std::max(run_->start, until));
    run_->run->ledger_series().begin(*run_->rows_from, run_->at_start);
}

/// What the datagrams come to when the slice with this watermark ends a row.
std::optional<DatagramLedger> Acquisition::end_row(std::uint64_t watermark) {
    if (!run_ || !rows_may_end_ || options_.second == 0) return {};
    if (run_->stop && watermark >= *run_->stop) return {};  // the last row is made at the end
    const std::uint64_t due =
        run_->rows_from ? run_->row_due : add_or_max(std::max(run_->start, earliest_time_), options_.second);
    if (watermark < due) return {};
    begin_rows(watermark);
    const std::uint64_t beyond = (watermark - *run_->rows_from) % options_.second;
    run_->row_due = add_or_max(watermark - beyond, options_.second);
    return totals(Reading::quick).datagrams;
}

/// A replay goes by detector time, in steps short of a row: its rows are the same however fast it is.
void Acquisition::look_for_row(std::uint64_t newest) {
    // One wild time must not end the looking.
    const bool far_back = add_or_max(newest, 2 * options_.second) < row_look_;
    if (newest < row_look_ && !far_back) return;
    row_look_ = add_or_max(newest, options_.second / 4);
    rows_may_end_ = true;
    process_slice();
    rows_may_end_ = false;
}

void Acquisition::restart_after_common_reset() {
    if (!failure_.empty()) return;
    // A step back by less than max_lag is left to time: its frames are late for as long.
    const TrackerStatus sources = tracker_.status(now_ns_);
    if (!sources.behind_watermark || add_or_max(*sources.reference, options_.max_lag) >= watermark_) return;
    if (run_) {
        // List-mode is in the order of time: what comes now cannot be part of this run.
        run_->reason = "the boards were reset: detector time went back";
        run_->stop = watermark_;
        process_slice(watermark_);
    }
    log_limit_.log(LogLevel::warning, "reset",
                   "the sources agree on a time before the present watermark: detector time starts again");
    restart_time();
    if (waiting_) waiting_->start = 0;
}

/// Decides everything that waits and forgets where detector time stood.
void Acquisition::restart_time() {
    if (!failure_.empty()) return;
    process_slice(UINT64_MAX);
    collect_all();
    if (!failure_.empty()) return;
    try {
        pipeline_->reset();
    } catch (const std::exception& e) {
        fail(e.what());
        return;
    }
    tracker_.restart_watermark();
    watermark_ = 0;
    pending_ = 0;
    latest_pending_time_ = 0;
    arrivals_.clear();
    earliest_time_ = UINT64_MAX;
    newest_time_ = 0;
}

}  // namespace petacq::daemon

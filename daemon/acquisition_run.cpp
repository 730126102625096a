// The part of the acquisition thread that begins, watches and ends runs.
#include <algorithm>
#include <utility>

#include "daemon/acquisition.hpp"
#include "daemon/logging.hpp"
#include "daemon/saturate.hpp"

namespace petacq::daemon {

namespace {

std::int64_t steady_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace

void Acquisition::begin(std::unique_ptr<Run> run, std::optional<std::uint64_t> duration_ticks) {
    restart_after_common_reset();
    // What is below the watermark belongs to the time before the run.
    const std::uint64_t start = next_watermark();
    process_slice(start);
    collect_all();
    // Of a stream that is over, nothing belongs to the run.
    if (!tracker_.status(now_ns_).holding) earliest_time_ = UINT64_MAX;
    ActiveRun active;
    active.run = std::move(run);
    active.duration = duration_ticks;
    active.start = start;
    active.at_start = totals(Reading::one_moment);
    run_ = std::move(active);
    publish(false);
    if (!failure_.empty()) {
        run_->reason = failure_;
        finish_run(true);
    }
}

void Acquisition::ask_to_stop(const std::string& reason) {
    if (!run_ || run_->stop_asked_ns) return;
    run_->reason = reason;
    run_->stop_asked_ns = steady_ns();
    run_->stop_deadline = Clock::now() + options_.stop_timeout;
}

/// To be called when no frame earlier than the earliest can come any more: else the end would depend on which
/// source was heard first.
void Acquisition::settle_duration() {
    if (!run_->duration || run_->stop || earliest_time_ == UINT64_MAX) return;
    run_->stop = add_or_max(std::max(run_->start, earliest_time_), *run_->duration);
}

void Acquisition::watch_run() {
    if (!run_) return;
    const std::string write_failure = run_->run->write_failure();
    if (!write_failure.empty()) {
        run_->reason = write_failure;
        run_->stop = watermark_;
        process_slice(watermark_);
        if (run_) finish_run(true);
        return;
    }
    if (!run_->stop_asked_ns) return;
    // What had arrived when the stop was asked for may still be on its way here from the receivers.
    const auto settle = std::chrono::duration_cast<std::chrono::nanoseconds>(options_.receive_delay).count();
    if (!run_->stop_fixed && now_ns_ >= *run_->stop_asked_ns + settle) {
        settle_duration();
        const std::uint64_t beyond = std::max(add_or_max(newest_time_, options_.max_offset + 1), watermark_);
        run_->stop = std::min(run_->stop.value_or(UINT64_MAX), beyond);
        run_->stop_fixed = true;
        process_slice();
        if (!run_) return;
    }
    if (Clock::now() < *run_->stop_deadline) return;
    log_warning(
        "run {}: the watermark did not reach the end of the run in time; ended without waiting further",
        run_->run->id());
    if (!run_->stop) run_->stop = add_or_max(newest_time_, options_.max_offset + 1);
    process_slice(std::max(*run_->stop, watermark_));
    if (run_) finish_run(false);
}

void Acquisition::finish_run(bool failed) {
    if (!failed) collect_all();
    if (!run_) return;  // the pipeline failed while its last results were collected
    FinishedRun finished;
    finished.end.reason = run_->reason;
    finished.end.failed = failed;
    finished.end.start_ticks = run_->start;
    finished.end.stop_ticks = run_->stop.value_or(watermark_);
    finished.end.ledger = totals(Reading::one_moment) - run_->at_start;
    finished.run = std::move(run_->run);
    run_.reset();
    publish(true);
    on_finished_(std::move(finished));
}

void Acquisition::restart_after_common_reset() {
    if (!failure_.empty() || !tracker_.status(now_ns_).behind_watermark) return;
    log_warning("the sources agree on a time before the present watermark: detector time starts again");
    process_slice(UINT64_MAX);
    collect_all();
    if (!failure_.empty()) return;
    pipeline_->reset();
    tracker_.restart_watermark();
    watermark_ = 0;
    pending_ = 0;
    latest_pending_time_ = 0;
    earliest_time_ = UINT64_MAX;
    newest_time_ = 0;
}

}  // namespace petacq::daemon

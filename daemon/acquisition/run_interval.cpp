#include "daemon/acquisition/run_interval.hpp"

#include <algorithm>
#include <cassert>

#include "daemon/tracking/saturate.hpp"

namespace petacq::daemon {

void RunInterval::wait(std::uint64_t start, const RequestedInterval& requested) {
    assert(none());
    assert(start >= requested.start.value_or(0));
    *this = {};
    state_ = State::waiting;
    start_ = start;
    requested_ = requested.start.has_value();
    stop_ = requested.stop;
    duration_ = requested.duration;
    reason_ = stop_ ? "end of the interval" : "duration reached";
}

void RunInterval::start() {
    assert(waiting());
    state_ = State::running;
}

void RunInterval::wait_until(std::uint64_t start) {
    assert(running() && start >= start_);
    state_ = State::waiting;
    start_ = start;
}

void RunInterval::finish() {
    assert(running());
    state_ = State::none;
}

std::optional<std::uint64_t> RunInterval::close_at(std::uint64_t watermark) const {
    if (waiting() && watermark >= start_) return start_;
    if (running() && stop_ && watermark >= *stop_) return stop_;
    return std::nullopt;
}

void RunInterval::begin_data(std::uint64_t ticks) {
    assert(running());
    if (data_begin_ && duration_ && stop_ == add_or_max(*data_begin_, *duration_)) stop_.reset();
    data_begin_ = std::max(start_, ticks);
    if (duration_ && !stop_) stop_ = add_or_max(*data_begin_, *duration_);
}

std::uint64_t RunInterval::stop_ticks(std::uint64_t watermark) const {
    return std::max(stop_.value_or(watermark), start_);
}

void RunInterval::ask_to_stop(const std::string& reason, std::optional<std::uint64_t> stop,
                              std::int64_t read_ns, Clock::time_point deadline) {
    if (none() || request_) return;
    request_ = StopRequest{reason, stop, read_ns, deadline};
}

bool RunInterval::overdue(Clock::time_point now) const {
    if (none() || !request_ || (running() && !request_->fixed)) return false;
    return now >= request_->deadline;
}

bool RunInterval::wants_stop(std::int64_t host_ns) const {
    return running() && request_ && !request_->fixed && host_ns >= request_->read_ns;
}

void RunInterval::fix_stop(std::uint64_t end, Clock::time_point deadline) {
    assert(running() && request_);
    if (!stop_ || end < *stop_) {
        reason_ = request_->reason;
        stop_ = std::max(end, start_);
    }
    request_->fixed = true;
    request_->deadline = deadline;
}

void RunInterval::end_input(const std::string& reason, std::uint64_t end, std::uint64_t reach) {
    assert(running());
    if (stop_ && *stop_ <= add_or_max(end, reach)) return;
    reason_ = reason;
    stop_ = std::max(end, start_);
}

void RunInterval::stop_now(const std::string& reason, std::uint64_t end) {
    assert(running());
    reason_ = reason;
    stop_ = std::max(end, start_);
}

void RunInterval::start_now(std::uint64_t watermark) {
    assert(waiting());
    start_ = watermark;
}

void RunInterval::fail(const std::string& reason) {
    reason_ = reason;
    failed_ = true;
}

void RunInterval::time_restarted() {
    if (none() || waits_for_request()) return;
    start_ = 0;
    data_begin_.reset();
    if (running() && duration_ && !request_) stop_.reset();
}

}  // namespace petacq::daemon

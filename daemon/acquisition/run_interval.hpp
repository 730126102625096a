// When a run starts and stops: a state machine without a clock, a thread or data of its own.
//
//   none --wait()--> waiting --start()--> running --finish()--> none
//                       ^-----wait_until()---'
//
// A run waits until the watermark reaches its start, then for its first data, and runs until the watermark
// reaches its stop. The stop may be known from the beginning, follow from the duration once the first data
// are known, or be fixed after somebody has asked for it. Times are ticks of detector time unless their name
// says otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace petacq::daemon {

/// Where a run is to start and stop, in ticks of detector time.
struct RequestedInterval {
    std::optional<std::uint64_t> start;     ///< absent: now
    std::optional<std::uint64_t> stop;      ///< absent: when asked to, or after `duration`
    std::optional<std::uint64_t> duration;  ///< from the first data
    /// A replay of a run covers nothing before this time: its capture lacks frames there.
    std::optional<std::uint64_t> covered_from{};
};

class RunInterval {
  public:
    using Clock = std::chrono::steady_clock;

    [[nodiscard]] bool none() const { return state_ == State::none; }
    [[nodiscard]] bool waiting() const { return state_ == State::waiting; }
    [[nodiscard]] bool running() const { return state_ == State::running; }

    // Transitions.

    /// none -> waiting. `start` is not before the watermark nor before requested.start.
    void wait(std::uint64_t start, const RequestedInterval& requested);
    /// Whether it waits for a start that was asked for.
    [[nodiscard]] bool waits_for_request() const { return waiting() && requested_; }
    /// A waiting run that has not started at `deadline` is late. Without this call it waits for ever.
    void start_by(Clock::time_point deadline) { start_deadline_ = deadline; }
    /// waiting -> running.
    void start();
    /// running -> waiting: the run starts at this time instead, since what came before is in no run.
    /// REQUIRES: not before start_ticks().
    void wait_until(std::uint64_t start);
    /// running -> none.
    void finish();

    // Questions of the loop.

    [[nodiscard]] std::uint64_t start_ticks() const { return start_; }
    [[nodiscard]] bool late(Clock::time_point now) const {
        return waiting() && start_deadline_ && now >= *start_deadline_;
    }
    /// Where the slice that moves the watermark to `watermark` closes its segment: at the start of a run that
    /// waits, at the stop of a run in progress, if the watermark reaches it.
    [[nodiscard]] std::optional<std::uint64_t> close_at(std::uint64_t watermark) const;
    /// A run in progress whose first data have not come, or are not certain to be the first.
    [[nodiscard]] bool waits_for_data() const { return running() && !data_begin_; }
    /// The first data of the run lie at `ticks`, and no earlier ones will come: its duration counts from
    /// here. Again if they turn out to begin later: the time before was that of a bad source.
    void begin_data(std::uint64_t ticks);
    [[nodiscard]] const std::optional<std::uint64_t>& data_begin() const { return data_begin_; }
    /// Where the run stops if it ends with this watermark.
    [[nodiscard]] std::uint64_t stop_ticks(std::uint64_t watermark) const;
    [[nodiscard]] const std::string& reason() const { return reason_; }
    [[nodiscard]] bool failed() const { return failed_; }

    // Stopping.

    /// Asks a waiting or running run to stop; the first request counts. `stop`: where, absent: past
    /// everything received before the request, which has been read when host time reaches `read_ns`. A run
    /// that still waits at `deadline` is overdue.
    void ask_to_stop(const std::string& reason, std::optional<std::uint64_t> stop, std::int64_t read_ns,
                     Clock::time_point deadline);
    /// The time at which somebody has asked the run to stop.
    [[nodiscard]] std::optional<std::uint64_t> asked_stop() const {
        return request_ ? request_->stop : std::nullopt;
    }
    /// A run that waits for its start, or with a fixed stop, has not reached it in time. While data from
    /// before the request wait to be read, a run in progress is never overdue.
    [[nodiscard]] bool overdue(Clock::time_point now) const;
    /// Whether it is time to fix the stop of a running run: somebody has asked for it, and everything
    /// received before the request has been read.
    [[nodiscard]] bool wants_stop(std::int64_t host_ns) const;
    /// Stops at `end` for the reason of the request, but not before the start. A run whose own stop is not
    /// later keeps that and its reason. A run that has not stopped at `deadline` is overdue.
    void fix_stop(std::uint64_t end, Clock::time_point deadline);
    /// All input ends before `end`: stops a running run there, unless it is to stop before `end + reach`. A
    /// live run whose sources have ended may have stopped so much later: its watermark stood there.
    void end_input(const std::string& reason, std::uint64_t end, std::uint64_t reach);
    /// Stops a running run at `end`, in spite of what was requested.
    void stop_now(const std::string& reason, std::uint64_t end);
    /// A waiting run starts where the watermark stands, instead of at its start.
    void start_now(std::uint64_t watermark);
    /// Stops a running run for this reason. `fail` also marks it as failed.
    void set_reason(const std::string& reason) { reason_ = reason; }
    void fail(const std::string& reason);

    /// Detector time starts again at 0: a run that waits for a requested start keeps waiting;
    /// another starts at once. A run in progress starts again.
    void time_restarted();

  private:
    enum class State : std::uint8_t { none, waiting, running };
    struct StopRequest {
        std::string reason;
        std::optional<std::uint64_t> stop;
        std::int64_t read_ns = 0;
        Clock::time_point deadline;
        bool fixed = false;  ///< stop_ takes it into account
    };

    State state_ = State::none;
    std::uint64_t start_ = 0;
    bool requested_ = false;  ///< start_ was asked for
    std::optional<std::uint64_t> data_begin_;
    std::optional<std::uint64_t> stop_;
    std::optional<std::uint64_t> duration_;
    std::optional<Clock::time_point> start_deadline_;
    std::optional<StopRequest> request_;
    std::string reason_;
    bool failed_ = false;
};

}  // namespace petacq::daemon

// When runs may start and stop: a state machine. It has no thread, no clock and no files. The service tells
// it what has happened, and does what it decides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace petacq::daemon {

/// The actions that the service takes after an event, in the order of the members. No action is set if the
/// event does not fit the phase.
struct RunDecision {
    std::string refusal{};          ///< why the request is refused; empty: it is not
    bool create_files = false;      ///< of the run that was asked for
    bool accept_start = false;      ///< the start has succeeded
    bool refuse_start = false;      ///< the start has failed
    bool end_run = false;           ///< the acquisition is to end the run, for end_reason(), at end_ticks()
    bool ended_itself = false;      ///< the run ended without having been asked to
    bool finalise = false;          ///< the files of the run
    bool discard = false;           ///< the run, which has no data
    bool now_idle = false;          ///< no run is left: those who wait for that are to be told
    bool report_failure = false;    ///< the pipeline has failed, and no run is left
    bool take_calibration = false;  ///< the one that waits, if any

    bool operator==(const RunDecision&) const = default;
};

class RunLifecycle {
  public:
    enum class Phase : std::uint8_t {
        idle,
        creating,    ///< the files of a run are being created
        running,     ///< the acquisition has the run, also while that waits for data
        stopping,    ///< the acquisition has been asked to end it
        finalising,  ///< the acquisition is done with it, and its files are being closed or removed
        failed,      ///< the pipeline has failed, and there is no run
    };

    // Requests of operators.

    /// `run`: the id that was asked for; absent: any.
    [[nodiscard]] RunDecision start_asked(std::optional<std::string> run);
    /// `run`: refused if another one is in progress. `stop_ticks` is refused above `latest`, for which the
    /// acquisition could wait for ever.
    [[nodiscard]] RunDecision stop_asked(const std::optional<std::string>& run,
                                         std::optional<std::uint64_t> stop_ticks, std::uint64_t latest);
    /// The daemon is to exit: no further run starts.
    [[nodiscard]] RunDecision shut_down(const std::string& reason);
    /// Another calibration waits to be taken, or none waits any more.
    [[nodiscard]] RunDecision calibration_offered(bool waits);

    // Events in the life of a run.

    [[nodiscard]] RunDecision files_created(const std::string& run);
    [[nodiscard]] RunDecision files_not_created();
    /// The run has started, or waits for the start that was asked for.
    [[nodiscard]] RunDecision started(const std::string& run);
    /// The acquisition is done with the run.
    [[nodiscard]] RunDecision finished(bool never_began);
    /// The files are closed. `failed`: they do not hold what they should.
    [[nodiscard]] RunDecision finalised(bool failed);
    [[nodiscard]] RunDecision discarded();
    /// May be told again.
    [[nodiscard]] RunDecision pipeline_failed(const std::string& why);

    [[nodiscard]] Phase phase() const { return phase_; }
    /// The id of the run in progress. REQUIRES: its files have been created.
    [[nodiscard]] const std::string& run() const { return *run_; }
    [[nodiscard]] const std::string& end_reason() const { return end_reason_; }
    /// The detector time at which the run is to end; absent: at once.
    [[nodiscard]] std::optional<std::uint64_t> end_ticks() const { return end_ticks_; }
    [[nodiscard]] bool pipeline_has_failed() const { return !pipeline_failure_.empty(); }
    /// Whether the last run, or the pipeline, failed.
    [[nodiscard]] bool failed() const { return run_failed_ || pipeline_has_failed(); }

  private:
    [[nodiscard]] std::string start_refusal() const;
    [[nodiscard]] bool has_run() const { return phase_ != Phase::idle && phase_ != Phase::failed; }
    RunDecision end(const std::string& reason, std::optional<std::uint64_t> ticks = {});
    RunDecision without_run(RunDecision decision);

    Phase phase_ = Phase::idle;
    std::optional<std::string> run_;  ///< while the files are being created: the id that was asked for
    std::string end_reason_;          ///< not empty: the run is to end, as soon as its files are there
    std::optional<std::uint64_t> end_ticks_;
    bool shutting_down_ = false;
    std::string pipeline_failure_;
    bool run_failed_ = false;  ///< the last one
    bool calibration_waits_ = false;
};

}  // namespace petacq::daemon

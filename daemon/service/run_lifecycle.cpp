#include "daemon/service/run_lifecycle.hpp"

#include <fmt/format.h>

#include <utility>

namespace petacq::daemon {

std::string RunLifecycle::start_refusal() const {
    if (shutting_down_) return "the daemon is shutting down";
    if (pipeline_has_failed())
        return "the pipeline has failed (" + pipeline_failure_ + "); restart the daemon";
    switch (phase_) {
        case Phase::creating:
            return "another run is being started";
        case Phase::running:
            return "run " + *run_ + " is in progress; stop it first";
        case Phase::stopping:
        case Phase::finalising:
            return "run " + *run_ + " is being finalised; stop it first";
        case Phase::idle:
        case Phase::failed:
            break;
    }
    return "";
}

RunDecision RunLifecycle::start_asked(std::optional<std::string> run) {
    if (std::string refusal = start_refusal(); !refusal.empty()) return {.refusal = std::move(refusal)};
    phase_ = Phase::creating;
    run_ = std::move(run);
    end_reason_.clear();
    end_ticks_.reset();
    return {.create_files = true};
}

RunDecision RunLifecycle::stop_asked(const std::optional<std::string>& run,
                                     std::optional<std::uint64_t> stop_ticks, std::uint64_t latest) {
    if (!has_run()) return {.refusal = "no run is in progress"};
    if (run && run != run_) {
        return {.refusal =
                    fmt::format("the run in progress is {}, not {}", run_.value_or("another one"), *run)};
    }
    if (stop_ticks.value_or(0) > latest) {
        return {.refusal = fmt::format("stop_ticks {}: expected at most {}, a minute from now", *stop_ticks,
                                       latest)};
    }
    return end("stopped by operator", stop_ticks);
}

RunDecision RunLifecycle::shut_down(const std::string& reason) {
    shutting_down_ = true;
    return has_run() ? end(reason) : RunDecision{.now_idle = true};
}

RunDecision RunLifecycle::end(const std::string& reason, std::optional<std::uint64_t> ticks) {
    if (phase_ != Phase::creating && phase_ != Phase::running) return {};
    end_reason_ = reason;
    end_ticks_ = ticks;
    if (phase_ == Phase::creating) return {};
    phase_ = Phase::stopping;
    return {.end_run = true};
}

RunDecision RunLifecycle::calibration_offered(bool waits) {
    const bool now = phase_ == Phase::idle;
    calibration_waits_ = waits && !now;
    return {.take_calibration = now};
}

RunDecision RunLifecycle::files_created(const std::string& run) {
    if (phase_ != Phase::creating) return {};
    run_ = run;
    const bool to_end = !end_reason_.empty();
    phase_ = to_end ? Phase::stopping : Phase::running;
    return {.end_run = to_end};
}

RunDecision RunLifecycle::files_not_created() {
    if (phase_ != Phase::creating) return {};
    return without_run({.refuse_start = true});
}

/// It may have finished at once, before it is told that it waits.
RunDecision RunLifecycle::started(const std::string& run) {
    return {.accept_start = (phase_ == Phase::running || phase_ == Phase::stopping) && run == run_};
}

RunDecision RunLifecycle::finished(bool never_began) {
    if (phase_ != Phase::running && phase_ != Phase::stopping) return {};
    const Phase before = std::exchange(phase_, Phase::finalising);
    // The start of one that never began is refused when its id can be used again.
    return {.refuse_start = !never_began,
            .ended_itself = before == Phase::running,
            .finalise = !never_began,
            .discard = never_began};
}

RunDecision RunLifecycle::finalised(bool failed) {
    if (phase_ != Phase::finalising) return {};
    run_failed_ = failed;
    return without_run({});
}

RunDecision RunLifecycle::discarded() {
    if (phase_ != Phase::finalising) return {};
    return without_run({.refuse_start = true});
}

RunDecision RunLifecycle::without_run(RunDecision decision) {
    phase_ = pipeline_has_failed() ? Phase::failed : Phase::idle;
    run_.reset();
    decision.now_idle = true;
    decision.report_failure = phase_ == Phase::failed;
    if (phase_ == Phase::idle) decision.take_calibration = std::exchange(calibration_waits_, false);
    return decision;
}

RunDecision RunLifecycle::pipeline_failed(const std::string& why) {
    if (pipeline_has_failed()) return {};
    pipeline_failure_ = why;
    if (phase_ != Phase::idle) return {};
    phase_ = Phase::failed;
    return {.report_failure = true};
}

}  // namespace petacq::daemon

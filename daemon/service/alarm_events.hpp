// Which changes of the daemon's status are worth an alarm.
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace petacq::daemon {

/// The facts of an event by name: event, code, message, ...
using AlarmFacts = std::map<std::string, std::string>;

/// Finds the events in a series of status documents: a health reason is raised or cleared, or the recording
/// state changes. The same event is reported at most once per interval; if its cause still stands when the
/// interval ends, it is reported then.
class AlarmEvents {
  public:
    using Clock = std::chrono::steady_clock;

    explicit AlarmEvents(std::chrono::seconds min_interval) : min_interval_(min_interval) {}

    /// The events to report now. All health reasons of the first document are events; its recording state is
    /// none, since there is no earlier state to compare it with.
    std::vector<AlarmFacts> of(const nlohmann::json& status, Clock::time_point now);

  private:
    /// Whether an event of this kind may be reported now. If so, the class assumes that it is.
    bool may_tell(const std::string& key, Clock::time_point now);

    const std::chrono::seconds min_interval_;
    std::map<std::string, AlarmFacts> raised_;  ///< reported as raised, by code
    std::string recording_;                     ///< the state told last
    std::map<std::string, Clock::time_point> told_;
};

}  // namespace petacq::daemon

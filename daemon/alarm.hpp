// Runs a command of the user when the health or the recording of the daemon changes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "config/configuration.hpp"
#include "net/mutex.hpp"

namespace petacq::daemon {

/// The facts of an event by name: event, code, message, ...
using AlarmFacts = std::map<std::string, std::string>;

/// What is told of a status document: a reason of health raised or cleared, or another word of the strip.
/// Each is told at most once per interval; what is still so at its end is told then.
class AlarmEvents {
  public:
    using Clock = std::chrono::steady_clock;

    explicit AlarmEvents(std::chrono::seconds min_interval) : min_interval_(min_interval) {}

    /// What is to be told now. The first document tells its reasons; its word is what later ones are compared
    /// with.
    std::vector<AlarmFacts> of(const nlohmann::json& status, Clock::time_point now);

  private:
    /// Whether an event of this kind may be told now; notes that it is.
    bool may_tell(const std::string& key, Clock::time_point now);

    const std::chrono::seconds min_interval_;
    std::map<std::string, AlarmFacts> raised_;  ///< told as raised, by code
    std::string recording_;                     ///< the state told last
    std::map<std::string, Clock::time_point> told_;
};

/// A thread of its own starts the command, one at a time, and waits for it: the daemon never does. The
/// command gets the facts in its environment (PETACQ_EVENT, ...) and as one JSON object on its standard
/// input, and runs in a process group of its own, which is killed after 30 s.
class Alarm {
  public:
    /// Throws config::Error if the command is a path that cannot be executed.
    explicit Alarm(const config::Alarm& settings);
    Alarm(const Alarm&) = delete;
    Alarm& operator=(const Alarm&) = delete;
    /// Does not wait for a command that is still running.
    ~Alarm() = default;

    /// One thread: the latest status document.
    void observe(const nlohmann::json& status);

  private:
    void run(const std::stop_token& stopping);
    void tell(const AlarmFacts& event, const std::stop_token& stopping) const;

    const std::vector<std::string> command_;
    AlarmEvents events_;
    net::Mutex mutex_;
    std::condition_variable_any more_;
    std::deque<AlarmFacts> waiting_ PETACQ_GUARDED_BY(mutex_);
    std::jthread thread_;
};

}  // namespace petacq::daemon

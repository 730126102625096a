// Runs a command of the user when the health or the recording of the daemon changes.
#pragma once

#include <condition_variable>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "config/configuration.hpp"
#include "daemon/service/alarm_events.hpp"
#include "net/base/mutex.hpp"

namespace petacq::daemon {

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

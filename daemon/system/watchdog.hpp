// Feeds the watchdog of the service manager as long as every stage works or has nothing to do.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "daemon/system/progress.hpp"

namespace petacq::daemon {

/// A thread of its own: the progress of the stages feeds the watchdog, whatever holds up the control thread.
class Watchdog {
  public:
    /// Looks at the `stages` at least twice per `interval`, at least once a second, and calls `feed` if none
    /// is stalled. Logs once when a stage stalls and once when it works again. Both functions are called in
    /// the thread, for the first time at once.
    Watchdog(std::chrono::microseconds interval, std::function<std::vector<StageState>()> stages,
             std::function<void()> feed);
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;
    /// Waits for the thread.
    ~Watchdog() = default;

  private:
    void check();

    const std::function<std::vector<StageState>()> stages_;
    const std::function<void()> feed_;
    std::set<std::string> stalled_;  ///< stages whose stall has been logged
    std::jthread thread_;
};

}  // namespace petacq::daemon

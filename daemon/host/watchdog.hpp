// Feeds the watchdog of the service manager as long as every stage works or has nothing to do.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "daemon/host/progress.hpp"

namespace petacq::daemon {

/// Runs in the control thread (the io_context), so that the watchdog is not fed if that thread hangs.
class Watchdog {
  public:
    /// Checks the `stages` twice per `interval` and calls `feed` if none is stalled. Logs once when a stage
    /// stalls and once when it works again.
    Watchdog(boost::asio::io_context& io, std::chrono::microseconds interval,
             std::function<std::vector<StageState>()> stages, std::function<void()> feed);

  private:
    void check();

    boost::asio::steady_timer timer_;
    const std::chrono::microseconds pause_;
    const std::function<std::vector<StageState>()> stages_;
    const std::function<void()> feed_;
    std::set<std::string> stalled_;  ///< stages whose stall has been logged
};

}  // namespace petacq::daemon

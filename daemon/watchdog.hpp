// Feeds the service manager's watchdog as long as every stage moves or has nothing to do.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "daemon/progress.hpp"

namespace petacq::daemon {

/// Lives in the thread of the io_context, the control thread: should that one stand still, nothing feeds the
/// watchdog either.
class Watchdog {
  public:
    /// Looks twice an `interval` at the `stages`, and calls `feed` when none is stalled. A stage that stands
    /// still is logged once, and once more when it moves again.
    Watchdog(boost::asio::io_context& io, std::chrono::microseconds interval,
             std::function<std::vector<StageState>()> stages, std::function<void()> feed);

  private:
    void look();

    boost::asio::steady_timer timer_;
    const std::chrono::microseconds pause_;
    const std::function<std::vector<StageState>()> stages_;
    const std::function<void()> feed_;
    std::set<std::string> stalled_;  ///< known to be, and logged
};

}  // namespace petacq::daemon

// Brings another calibration into use between runs.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/acquisition/acquisition.hpp"
#include "daemon/run/run.hpp"
#include "daemon/service/reload.hpp"

namespace petacq::daemon {

/// A calibration waits here until there is no run. The thread that runs the io_context uses it.
class CalibrationSwitch {
  public:
    /// All references outlive this object.
    CalibrationSwitch(boost::asio::io_context& io, RunSetting& setting, Acquisition& acquisition)
        : io_(io), setting_(setting), acquisition_(acquisition) {}

    /// Waits from now on, in place of what waits. Absent: nothing waits any more.
    void offer(std::optional<NewCalibration> next);
    /// The calibration that waits, for the status; absent if none does.
    [[nodiscard]] std::optional<CalibrationInUse> waiting() const;
    /// Brings what waits into use: from then on the setting names it. `done` gets the reason if that failed,
    /// "" if it did not or if nothing waits. REQUIRES: no run, and none is started until taking() is false.
    void take(std::function<void(const std::string& failure)> done);
    [[nodiscard]] bool taking() const { return !done_.empty(); }
    /// REQUIRES: taking(). Calls `then` afterwards, whether it succeeds or not.
    void when_taken(std::function<void()> then) {
        done_.emplace_back([then = std::move(then)](const std::string& /*failure*/) { then(); });
    }

  private:
    void advance(const std::string& failure);
    void taken(const NewCalibration& calibration, const std::string& failure);

    boost::asio::io_context& io_;
    RunSetting& setting_;
    Acquisition& acquisition_;
    std::optional<NewCalibration> next_;
    std::vector<std::function<void(const std::string&)>> done_;  ///< not empty: the acquisition is at it
};

}  // namespace petacq::daemon

// Notifications to the service manager: sd_notify(3).
//
// These functions use libsystemd. They do nothing without a service manager ($NOTIFY_SOCKET is not set) and
// in a build without libsystemd. A message is one datagram. If the manager itself hangs, sending waits for
// it. The watchdog's thread sends notify_watchdog(), the control thread everything else.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace petacq::daemon {

/// Why notification, though requested, is impossible; empty when all is well.
std::string notification_missing();

void notify_ready();
void notify_reloading();
/// Asks the manager not to kill the daemon before this time has passed, even if its own time-out is shorter.
void notify_stopping(std::chrono::microseconds within);
void notify_watchdog();
/// One line for people; `systemctl status` shows it, even after the daemon has exited.
void notify_status(std::string_view line);

/// Keeps that line up to date.
class StatusNotifier {
  public:
    /// Sends the line of this status document if it has changed.
    void tell(const nlohmann::json& status);

  private:
    std::string told_;
};

/// The interval of the watchdog, if the manager uses one.
std::optional<std::chrono::microseconds> watchdog_interval();

/// The status document in one line: "running r1: 12.3 M frames/s, 1.2 M prompts/s, ok".
std::string status_line(const nlohmann::json& status);

}  // namespace petacq::daemon

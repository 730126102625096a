// What the service manager hears of the daemon: sd_notify(3).
//
// By libsystemd. Without a service manager ($NOTIFY_SOCKET is not set), and in a build without libsystemd,
// nothing happens. A message is one datagram; should the manager itself stand still, sending waits for it, in
// the control thread only.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace petacq::daemon {

/// Why notification was asked for and cannot be given; empty when all is well.
std::string notification_missing();

void notify_ready();
void notify_reloading();
/// The manager, whatever its own time-out for stopping, kills no sooner than after this.
void notify_stopping(std::chrono::microseconds within);
void notify_watchdog();
/// One line for people, as `systemctl status` shows it, also after the end.
void notify_status(std::string_view line);

/// Keeps that line up to date.
class StatusNotifier {
  public:
    /// Sends the line of this status document if it is another one than before.
    void tell(const nlohmann::json& status);

  private:
    std::string told_;
};

/// Within which the watchdog must be fed, when the manager asked for that.
std::optional<std::chrono::microseconds> watchdog_interval();

/// The status document in one line: "running r1: 12.3 M frames/s, 1.2 M prompts/s, ok".
std::string status_line(const nlohmann::json& status);

}  // namespace petacq::daemon

// Notifications to the service manager: sd_notify(3).
//
// These functions do nothing without a service manager ($NOTIFY_SOCKET is not set). A message is one
// datagram. None of them waits: while the manager itself hangs and its socket is full, what it must know is
// kept and sent before the next message, and a status line or a feed of the watchdog is left out.
// Thread-safe.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace petacq::daemon {

/// Whether there is a service manager.
bool has_manager();
void notify_ready();
void notify_reloading();
/// Asks the manager not to kill the daemon before this time has passed, even if its own time-out is shorter.
void notify_stopping(std::chrono::microseconds within);
void notify_watchdog();
/// One line for people; `systemctl status` shows it, even after the daemon has exited.
/// Returns false if the manager did not take it.
bool notify_status(std::string_view line);

/// Keeps that line up to date.
class StatusNotifier {
  public:
    /// Sends the line of this status document if the manager does not have it yet.
    void tell(const nlohmann::json& status);

  private:
    std::string told_;
};

/// The interval of the watchdog, if the manager uses one.
std::optional<std::chrono::microseconds> watchdog_interval();

/// The status document in one line: "running r1: 12.3 M frames/s, 1.2 M prompts/s, ok".
std::string status_line(const nlohmann::json& status);

}  // namespace petacq::daemon

// The commands of petctl. Each function returns the exit status. `as_json`: prints what the daemon answers.
// RpcError, ControlUnavailable and OutputError pass through to the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/control/client.hpp"
#include "tools/petctl/text/text.hpp"

namespace petacq::petctl {

/// `parameters` of the method `start`; its times may be in seconds (start_times.hpp).
int start_run(daemon::ControlClient& client, nlohmann::json parameters, bool as_json);
/// `parameters` of the method `stop`.
int stop_run(daemon::ControlClient& client, const nlohmann::json& parameters, bool as_json);
/// How the status is shown.
enum class Form : std::uint8_t { summary, full, document };
int show_status(daemon::ControlClient& client, Form form);
/// Not for Form::document.
Lines status_text(const nlohmann::json& status, Form form);
/// `list_only`: only the list that a scanner description has, as JSON.
int show_sources(daemon::ControlClient& client, bool list_only);
/// `run` absent: the run in progress, or else the last one.
int show_ledger(daemon::ControlClient& client, const std::optional<std::string>& run, bool as_json);
/// Shows the ledger of a run.json or of the run directory that holds it. Needs no daemon.
int show_ledger_of_file(const std::string& path, bool as_json);
/// Shows what happened; `parameters` of the method `history`.
int show_history(daemon::ControlClient& client, const nlohmann::json& parameters, bool as_json);
/// `last`: the maximum number of runs.
int show_runs(daemon::ControlClient& client, std::optional<std::size_t> last, bool as_json);
/// Acknowledges that these runs were interrupted. The first refusal passes through to the caller.
int acknowledge_runs(daemon::ControlClient& client, const std::vector<std::string>& runs, bool as_json);
/// Notes a text in the run in progress.
int mark_run(daemon::ControlClient& client, const std::string& text, bool as_json);
/// Has the daemon read its configuration and its calibration again, and shows what has changed.
int reload(daemon::ControlClient& client, bool as_json);
/// Sets the level, or only shows it if `level` is empty.
int log_level(daemon::ControlClient& client, const std::string& level, bool as_json);

// relay.cpp
/// Passes bytes on between the standard input and output and the daemon, until either ends.
int relay(daemon::ControlClient& client);

// watch.cpp
/// `status --watch`: on a terminal each status replaces the previous one; elsewhere each is one line. Throws
/// ControlUnavailable if the daemon goes away.
int watch_status(daemon::ControlClient& client, Form form);
/// `watch`: the dashboard on a terminal; elsewhere the lines of watch_status. If the daemon goes away, the
/// dashboard says so and connects to `socket` again as soon as it can. Restores the terminal.
int watch_dashboard(daemon::ControlClient& client, const std::string& socket);

}  // namespace petacq::petctl

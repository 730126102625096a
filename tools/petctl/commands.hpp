// What petctl does, a function per command; watching is in watch.hpp. Each returns the exit status; RpcError,
// ControlUnavailable and OutputError are left to the caller.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "daemon/control_client.hpp"
#include "tools/petctl/text.hpp"

namespace petacq::petctl {

inline constexpr int exit_refused = 1;  ///< also: a run that is not whole, a ledger that does not close

int start_run(daemon::ControlClient& client, const nlohmann::json& parameters);
int stop_run(daemon::ControlClient& client);
int show_status(daemon::ControlClient& client, bool as_json);
/// `run` absent: the one in progress, else the last one.
int show_ledger(daemon::ControlClient& client, const std::optional<std::string>& run, bool as_json);
/// Of a run.json, or the run directory that holds it; without any daemon.
int show_ledger_of_file(const std::string& path, bool as_json);
/// `last`: at most so many.
int show_runs(daemon::ControlClient& client, std::optional<std::size_t> last, bool as_json);
/// `level` empty: shows it.
int log_level(daemon::ControlClient& client, const std::string& level);

}  // namespace petacq::petctl

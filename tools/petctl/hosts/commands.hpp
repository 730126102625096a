// The commands of petctl for several hosts as one. Each function returns the exit status. OutputError passes
// through to the caller.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/petctl/hosts/group.hpp"

namespace petacq::petctl {

/// Starts one run on all hosts at one detector time, or on none of them. A
/// host of a pair may be missing. `parameters`: those of the method
/// `start`, with times in seconds, too (start_times.hpp). A run id, a start and, for a duration, a stop that
/// hold for all are added.
int start_group(HostGroup& group, nlohmann::json parameters, bool as_json);
/// Starts the run that a host of a pair has on the other one, which has none: it joins from now on, to the
/// same stop. Its run has the same id, or one with a number (mouse-7-2) if it has a run of that id.
int join_group(HostGroup& group, bool as_json);
/// `parameters` of the method `stop`. Stops the runs of all hosts at one detector time, and waits until they
/// are on disk.
int stop_group(HostGroup& group, nlohmann::json parameters, bool as_json);
/// Exit status exit_status::unavailable if a host did not answer.
int show_group_status(HostGroup& group, bool as_json);
/// Repeats that every second until a signal: on a terminal as a table in place of the previous one; elsewhere
/// each is one line.
int watch_group(HostGroup& group, bool as_json);
/// `run` absent: the run in progress, or else the last one. Exit status 1 unless all close.
int show_group_ledger(HostGroup& group, const std::optional<std::string>& run, bool as_json);

/// `last`: the maximum number of runs. Exit status exit_status::unavailable if a host did not answer.
int show_group_runs(HostGroup& group, std::optional<std::size_t> last, bool as_json);
/// `parameters` of the method `history`. Exit status exit_status::unavailable if a host did not answer, and 1
/// if one refuses.
int show_group_history(HostGroup& group, const nlohmann::json& parameters, bool as_json);
/// Acknowledges these runs on the hosts where they were interrupted. Exit status exit_status::unavailable if
/// a host did not answer, and 1 if a run was interrupted on none, or a host refuses for another reason than
/// that it was not interrupted there.
int acknowledge_group(HostGroup& group, const std::vector<std::string>& runs, bool as_json);

/// Notes the text in the run of each host. Exit status exit_status::unavailable if a host did not answer, and
/// 1 if one refuses, which has no run in progress; of a pair one host is enough.
int mark_group(HostGroup& group, const std::string& text, bool as_json);

}  // namespace petacq::petctl

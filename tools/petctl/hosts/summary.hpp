// What several hosts are together: do they belong to one scanner, how are they, what have they counted?
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/petctl/hosts/group.hpp"
#include "tools/petctl/text/run_list.hpp"
#include "tools/petctl/text/text.hpp"

namespace petacq::petctl {

/// Where hosts that have answered `status` disagree, one line for each subject: version, scanner,
/// calibration, clock, tick, energy window, what is written. Empty: their runs can be combined. `versions`:
/// whether that of petacqd counts.
std::vector<std::string> disagreements(const std::vector<HostAnswer>& statuses, bool versions = true);

/// {"hosts": {name: status or {"failure"}}, "health": {"state", "reasons": [{"host", "code", "message",
/// "severity"}]}}. The state is the worst of all; a host that cannot be reached has failed, and hosts that
/// disagree or have different runs are degraded.
/// A host of a pair that is missing is degraded if its partner answers. `pairs`, if there are any: lists of
/// their hosts.
nlohmann::json group_status(const std::vector<HostAnswer>& statuses, const HostPairs& pairs);
/// Group status as a table: a row for each host and one for all, and the reasons.
Lines group_status_lines(const nlohmann::json& group);
/// The same on one line.
std::string group_status_line(const nlohmann::json& group);

/// Adds a count to a sum that is null until the first; a value that is no count changes nothing.
void add_count(nlohmann::json& sum, const nlohmann::json& count);
/// Adds the counts of this name of the hosts. A pair counts once, by the host that has more.
void add_counts(nlohmann::json& sum, const std::vector<std::pair<std::string, const nlohmann::json*>>& hosts,
                const char* name, const HostPairs& pairs);
/// Whether all ledgers close, with `own` added: false if one does not, null if one is not known.
void add_closed(nlohmann::json& all, const nlohmann::json& own);

/// {"hosts": {name: answer or {"failure"}}, "sum": ledger, "closed": all are there and close; null: none is
/// open, but not all are there}. A pair counts once, by the host that has accepted more datagrams.
nlohmann::json group_ledger(const std::vector<HostAnswer>& ledgers, const HostPairs& pairs);
/// A row for each counter that is not 0 everywhere, a column for each host and one for the sum.
Lines group_ledger_lines(const nlohmann::json& group);

/// The runs that a host lists, or why it does not.
struct HostRuns {
    std::string host;
    RunList runs;
    std::string failure;  ///< empty: it answered
    bool reached = false;
};

/// {"hosts": {name: {"data_dir", "runs"} or {"failure"}}, "runs": a row for each run, the latest last}. A row
/// has the fields of a run, with counts summed over the hosts and the worst state, and `hosts` and `not_on`:
/// those that have it, and those that do not. `last`: at most this many rows.
nlohmann::json group_runs(const std::vector<HostRuns>& lists, std::optional<std::size_t> last,
                          const HostPairs& pairs);
Lines group_runs_lines(const nlohmann::json& group);

/// {"hosts": {name: answer or {"failure"}}, "events": those of all hosts in the order of time, each with its
/// "host"}. group_history_lines() (history_text.hpp) shows it.
nlohmann::json group_history(const std::vector<HostAnswer>& answers);

}  // namespace petacq::petctl

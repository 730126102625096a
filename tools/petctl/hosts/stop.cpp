#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "config/base/answer.hpp"
#include "config/base/exit_status.hpp"
#include "daemon/peer/run_names.hpp"
#include "tools/petctl/hosts/commands.hpp"
#include "tools/petctl/hosts/common_time.hpp"
#include "tools/petctl/hosts/summary.hpp"
#include "tools/petctl/text/status_text.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using daemon::joined_run;
using nlohmann::json;

namespace {

/// How long a slow disk may take to close a run.
constexpr std::chrono::minutes patience_for_disks{10};

bool waits(const HostAnswer& status) {
    return at(status.result(), {"run", "waiting"}) == true;
}

bool has_run(const HostAnswer& status) {
    return at(status.result(), {"run"}).is_object();
}

/// A host on which the run still waits would remove it, though others have data. The start is near: all were
/// told the same one.
TimedStatus when_started(HostGroup& group) {
    constexpr std::chrono::seconds longest{10};
    const auto deadline = std::chrono::steady_clock::now() + longest;
    while (true) {
        TimedStatus status = TimedStatus::of(group, group.names());
        const auto& answers = status.answers;
        const bool some_wait = std::any_of(answers.begin(), answers.end(), waits);
        const bool some_run = std::any_of(answers.begin(), answers.end(), [](const HostAnswer& answer) {
            return has_run(answer) && !waits(answer);
        });
        if (!some_wait || !some_run || std::chrono::steady_clock::now() >= deadline) return status;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
}

/// Where all stop. Absent if no host receives anything: detector time would not get there.
std::optional<std::uint64_t> common_stop(const TimedStatus& status) {
    const bool moves =
        std::any_of(status.answers.begin(), status.answers.end(), [](const HostAnswer& answer) {
            const json& rate = at(answer.result(), {"rates", "frames_per_s"});
            return rate.is_number() && rate.get<double>() > 0;
        });
    return moves ? time_ahead(status) : std::nullopt;
}

/// A line for each host and one for all, or for those of `all` hosts that have stopped a run; or a document
/// with the same. Returns the number of problems.
std::size_t report(const std::vector<HostAnswer>& stopped, const HostGroup& group, bool as_json) {
    const std::size_t all = group.names().size();
    std::size_t problems = 0;
    std::size_t good = 0;
    std::set<std::string> runs;
    bool closes = true;
    json hosts = json::object();
    for (const HostAnswer& answer : stopped) {
        std::vector<std::string> found;
        if (answer.good()) {
            ++good;
            runs.insert(text_of(at(answer.result(), {"run"})));
            hosts[answer.host] = answer.result();
            if (!as_json) print(answer.host + ": " + stop_line(answer.result()) + "\n");
            closes = closes && at(answer.result(), {"ledger_closed"}) == true;
            found = stop_problems(answer.result());
        } else {
            found.push_back(answer.failure);
        }
        for (const std::string& problem : found)
            config::print_error("petctl", fmt::format("{}: {}", answer.host, problem));
        problems += found.size();
    }
    std::set<std::string> joined;  // without the numbers of hosts that joined
    for (const std::string& run : runs)
        joined.insert(joined_run(run, [&](const std::string& id) { return runs.contains(id); }));
    if (joined.size() > 1) {
        config::print_error("petctl", "the hosts had different runs");
        ++problems;
    }
    const bool kept = std::any_of(stopped.begin(), stopped.end(), [](const HostAnswer& answer) {
        return answer.good() && !never_began(answer.result());
    });
    json total = {{"run", joined.size() == 1 ? json(*joined.begin()) : json()}, {"ledger_closed", closes}};
    std::vector<std::pair<std::string, const json*>> counts;
    for (const HostAnswer& answer : stopped)
        if (answer.good()) counts.emplace_back(answer.host, &answer.result());
    for (const char* records : {"prompts", "delayeds", "singles", "triples", "delayed_triples"})
        add_counts(total[records], counts, records, group.pairs());
    if (as_json) {
        total["hosts"] = hosts;
        print_json(total);
        return problems;
    }
    if (kept)
        print((good == all ? "all" : fmt::format("{} of {} hosts", good, all)) + ": " + stop_line(total) +
              "\n");
    return problems;
}

}  // namespace

int stop_group(HostGroup& group, json parameters, bool as_json) {
    const TimedStatus status = when_started(group);
    std::vector<std::string> hosts;
    std::size_t problems = 0;
    for (const HostAnswer& answer : status.answers) {
        if (has_run(answer)) {
            hosts.push_back(answer.host);
            continue;
        }
        config::print_error("petctl", fmt::format("{}: {}", answer.host,
                                                  answer.good() ? "no run is in progress" : answer.failure));
        const bool partner_has = group.pairs().partner_is(answer.host, [&](const std::string& partner) {
            return std::any_of(status.answers.begin(), status.answers.end(), [&](const HostAnswer& other) {
                return other.host == partner && has_run(other);
            });
        });
        problems += partner_has ? 0 : 1;
    }
    // A host that joined has its own id of the run.
    if (parameters.contains("run")) {
        const std::string run = text_of(parameters["run"]);
        const auto is_run = [&](const HostAnswer& answer) {
            const std::string own = text_of(at(answer.result(), {"run", "id"}));
            return !has_run(answer) ||
                   joined_run(own, [&](const std::string& id) { return id == run; }) == run;
        };
        if (std::all_of(status.answers.begin(), status.answers.end(), is_run)) parameters.erase("run");
    }
    // Asks them again, since a host that hangs has held up the first answers.
    if (hosts.size() > 1) {
        if (const auto stop = common_stop(TimedStatus::of(group, hosts))) parameters["stop_ticks"] = *stop;
    }
    problems += report(group.ask(hosts, "stop", parameters, patience_for_disks), group, as_json);
    return problems == 0 ? exit_status::ok : exit_status::has_problems;
}

}  // namespace petacq::petctl

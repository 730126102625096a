#include "tools/petcal/check/check.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "config/base/answer.hpp"
#include "config/base/colour.hpp"
#include "config/base/error.hpp"
#include "tools/petcal/check/check_page.hpp"

namespace petacq::petcal {

namespace {

using nlohmann::json;

json number(const Change& change, double factor) {
    return change.known() ? json(change.size * factor) : json();
}

json findings_json(const std::vector<CheckFinding>& findings) {
    json out = json::array();
    for (const CheckFinding& f : findings) {
        const bool relative = f.subject != CheckFinding::Subject::times;
        json one = {{"subject", name_of(f.subject)}, {"text", f.text}, {"crystals", f.crystals}};
        one["bdm"] = f.bdm ? json(*f.bdm) : json();
        one["du"] = f.du ? json(*f.du) : json();
        one[relative ? "percent" : "ns"] = relative ? 100 * f.size : f.size;
        out.push_back(std::move(one));
    }
    return out;
}

json modules_json(const config::Geometry& g, const DetectorChanges& changes) {
    json out = json::array();
    for (const ModuleChanges& m : by_module(g, changes)) {
        out.push_back(
            {{"bdm", out.size()},
             {"time_ns", number(m.time_ns, 1)},
             {"photopeak_percent", number(m.photopeak, 100)},
             {"resolution_percent", number(m.resolution, 100)},
             {"singles_percent", number(m.singles, 100)},
             {"efficiency_percent", number(m.efficiency, 100)},
             {"efficiency_error_percent", m.efficiency.known() ? json(100 * m.efficiency.error) : json()},
             {"prompts_percent", number(m.prompts, 100)},
             {"spots_percent", number(m.spots, 100)}});
    }
    return out;
}

const char* colour_of(Verdict verdict) {
    if (verdict == Verdict::pass) return config::colour::good;
    return verdict == Verdict::look ? config::colour::warning : config::colour::bad;
}

void print_text(const DailyRun& reference, const DailyRun& run, const std::vector<CheckFinding>& findings,
                const std::vector<std::string>& unchecked) {
    const Verdict verdict = verdict_of(findings);
    config::print_coloured(std::string("verdict    ") + name_of(verdict) + '\n', colour_of(verdict));
    config::print_coloured(
        "run        " + run.directory.string() + "\nreference  " + reference.directory.string() + '\n', "");
    if (!findings.empty()) {
        std::string modules;
        for (const std::uint32_t bdm : modules_of(findings))
            modules += (modules.empty() ? "" : ", ") + std::to_string(bdm);
        config::print_coloured("BDMs       " + (modules.empty() ? "all" : modules) + '\n', "");
    }
    for (const CheckFinding& f : findings)
        config::print_coloured(f.text + '\n', colour_of(verdict));
    for (const std::string& why : unchecked)
        config::print_coloured("not checked: " + why + '\n', config::colour::warning);
    config::flush_output();
}

}  // namespace

Verdict check(const CheckOptions& options) {
    const DailyRun run = load_daily_run(options.run);
    const DailyRun reference = load_daily_reference(options.reference, options.run);
    const DetectorChanges changes = changes_between(reference, run);
    auto findings = find_in_changes(run.scanner.geometry, changes, options.limits);
    name_loss(findings, reference.live, run.live);
    const auto unchecked = insufficient_data(run.scanner.geometry, changes, options.limits);
    // What was found stands; that nothing was found would mean nothing.
    if (findings.empty() && !unchecked.empty())
        throw config::Error(options.run.string() + " and its reference: " + unchecked.front() +
                            "; take longer runs");
    if (!options.report.empty())
        write_check_page(options.report, reference, run, changes, findings, unchecked, options.limits);
    const json document = {{"verdict", name_of(verdict_of(findings))},
                           {"run", run.directory.string()},
                           {"reference", reference.directory.string()},
                           {"findings", findings_json(findings)},
                           {"not_checked", unchecked},
                           {"modules", modules_json(run.scanner.geometry, changes)}};
    if (options.json) {
        config::print_answer(document, "", true);
    } else {
        print_text(reference, run, findings, unchecked);
    }
    return verdict_of(findings);
}

}  // namespace petacq::petcal

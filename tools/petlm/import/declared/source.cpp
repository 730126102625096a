#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "daemon/coverage/unknown.hpp"
#include "daemon/run/operator_data.hpp"
#include "daemon/system/utc.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/import/declared/declaration.hpp"

namespace petacq::petlm {
namespace {

using nlohmann::json;

constexpr double same_share = 1e-6;

struct Said {
    const char* member;  ///< of the object "operator" of a run
    const char* option;
};
constexpr std::array<Said, 5> source_options = {{{"nuclide", "--nuclide"},
                                                 {"half_life_s", "--half-life-s"},
                                                 {"branching_ratio", "--branching-ratio"},
                                                 {"activity_MBq", "--activity-mbq"},
                                                 {"assay_utc", "--assay"}}};

json said_of_source(const Declared& said) {
    json asked = json::object();
    const auto set = [&](const char* member, const auto& value) {
        if (value) asked[member] = *value;
    };
    set("nuclide", said.source.nuclide);
    set("half_life_s", said.source.half_life_s);
    set("branching_ratio", said.source.branching_ratio);
    set("activity_MBq", said.activity_MBq);
    set("assay_utc", said.assay_utc);
    return asked;
}

/// Its messages begin with the name of a member.
daemon::OperatorData checked_source(const json& asked, std::chrono::system_clock::time_point start) {
    try {
        return daemon::operator_data(asked, start);
    } catch (const std::invalid_argument& error) {
        const std::string text = error.what();
        for (const auto& [member, option] : source_options)
            if (text.starts_with(std::string(member) + ':'))
                throw UsageError(option + text.substr(std::string(member).size()));
        throw UsageError(text);
    }
}

/// What an activity needs.
void check_needs(const Declaration& d, const json& asked) {
    const auto needs = [&](const char* member, const char* needed, const char* message) {
        if (asked.contains(member) && !asked.contains(needed)) throw UsageError(message);
    };
    needs("half_life_s", "nuclide", "--half-life-s: expected --nuclide, too, the name of the nuclide");
    needs("branching_ratio", "nuclide",
          "--branching-ratio: expected --nuclide, too, the name of the nuclide");
    needs("activity_MBq", "nuclide", "--activity-mbq: expected --nuclide, too, because it decays");
    needs("activity_MBq", "assay_utc",
          "--activity-mbq: expected --assay, too, the time at which it was measured");
    needs("assay_utc", "activity_MBq",
          "--assay: expected --activity-mbq, too, which was measured at that time");
    if (asked.contains("activity_MBq") && !d.coverage.anchor) {
        throw UsageError(
            "--activity-mbq: the file does not tell the time of day, until which the activity decays; "
            "expected --start-utc, too");
    }
}

bool is_same(double told, double said) {
    return std::abs(told - said) <= same_share * std::abs(told);
}

void check_told(const Declaration& d, const daemon::StatedActivity& told, const daemon::OperatorData& said) {
    if (said.nuclide->name != told.nuclide) d.contradicts("--nuclide " + said.nuclide->name, told.nuclide);
    if (!is_same(told.half_life_s, said.nuclide->half_life_s)) {
        d.contradicts(fmt::format("--half-life-s {}", said.nuclide->half_life_s),
                      fmt::format("{} s", told.half_life_s));
    }
    if (!is_same(told.branching_ratio, said.nuclide->branching_ratio)) {
        d.contradicts(fmt::format("--branching-ratio {}", said.nuclide->branching_ratio),
                      fmt::format("{}", told.branching_ratio));
    }
    if (!told.activity_MBq || !told.assay || !said.activity_MBq) return;
    const std::chrono::duration<double> later = *said.assay - *told.assay;
    const double then = *told.activity_MBq * std::exp2(-later.count() / told.half_life_s);
    if (!is_same(then, *said.activity_MBq)) {
        d.contradicts(fmt::format("--activity-mbq {}", *said.activity_MBq),
                      fmt::format("{:.6g} MBq at {}", then, daemon::utc_text(*said.assay)));
    }
}

}  // namespace

void declare_source(Declaration& d) {
    json asked = said_of_source(d.said);
    if (asked.empty()) return;
    const auto told = d.coverage.activity;
    if (told && !asked.contains("nuclide")) {
        asked["nuclide"] = told->nuclide;
        asked["half_life_s"] = told->half_life_s;
        asked["branching_ratio"] = told->branching_ratio;
    }
    check_needs(d, asked);
    const auto start = d.coverage.anchor ? d.coverage.anchor->utc : std::chrono::system_clock::time_point{};
    const daemon::OperatorData said = checked_source(asked, start);
    if (told) check_told(d, *told, said);
    if (told && (told->activity_MBq || !said.activity_MBq)) return;
    d.coverage.activity = daemon::stated_activity(said);
    d.now_known(daemon::unknown_half_life);
    d.source = daemon::to_json(said, start);
    if (!told) d.declared.update(d.source);
    for (const char* member : {"activity_MBq", "assay_utc"})
        if (d.source.contains(member)) d.declared[member] = d.source[member];
    d.declared.erase("activity_at_start_MBq");
}

}  // namespace petacq::petlm

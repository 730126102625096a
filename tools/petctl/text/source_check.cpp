#include "tools/petctl/text/source_check.hpp"

#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "config/nuclides/nuclides.hpp"
#include "daemon/system/quantity_text.hpp"
#include "daemon/system/utc.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

constexpr double clocks_differ_s = 300;
constexpr double many_half_lives = 10;

struct Need {
    const char* parameter;
    const char* needed;
    const char* why;
};

constexpr std::array needs{
    Need{"activity_MBq", "nuclide", "--activity-MBq needs --nuclide, because it decays until the run starts"},
    Need{"activity_MBq", "assay_utc",
         "--activity-MBq needs --assay, the time at which it was measured; --assay now for this moment"},
    Need{"assay_utc", "activity_MBq", "--assay needs --activity-MBq, which was measured at that time"},
    Need{"half_life_s", "nuclide", "--half-life-s needs --nuclide, the name of the nuclide"},
    Need{"branching_ratio", "nuclide", "--branching-ratio needs --nuclide, the name of the nuclide"},
};

/// 0 if it is not known.
double half_life_s(const json& parameters) {
    if (parameters.contains("half_life_s")) return parameters["half_life_s"].get<double>();
    const config::Nuclide* const nuclide = config::find_nuclide(parameters.value("nuclide", ""));
    return nuclide == nullptr ? 0 : nuclide->half_life_s;
}

}  // namespace

void complete_source(json& parameters, std::chrono::system_clock::time_point now) {
    for (const Need& need : needs)
        if (parameters.contains(need.parameter) && !parameters.contains(need.needed))
            throw std::invalid_argument(need.why);
    if (parameters.value("assay_utc", "") == "now") parameters["assay_utc"] = daemon::utc_text(now);
}

std::vector<std::string> source_doubts(const json& parameters, std::chrono::system_clock::time_point now) {
    std::vector<std::string> doubts;
    if (parameters.contains("nuclide") && !parameters.contains("activity_MBq")) {
        doubts.emplace_back(
            "the run has a nuclide and no activity (--activity-MBq, --assay); petlm nema and others will ask "
            "for it");
    }
    const auto assay = daemon::utc_time(parameters.value("assay_utc", ""));
    if (!assay) return doubts;
    const double since_s = std::chrono::duration<double>(now - *assay).count();
    if (since_s < -clocks_differ_s) {
        doubts.push_back(fmt::format("--assay {} is {} ahead; is its distance from UTC right?",
                                     parameters["assay_utc"].get<std::string>(),
                                     daemon::duration_text(-since_s)));
    }
    if (const double half_life = half_life_s(parameters);
        half_life > 0 && since_s > many_half_lives * half_life) {
        doubts.push_back(
            fmt::format("--assay {} is {:.0f} half-lives ago: hardly anything is left of the activity; is "
                        "the date right?",
                        parameters["assay_utc"].get<std::string>(), since_s / half_life));
    }
    return doubts;
}

}  // namespace petacq::petctl

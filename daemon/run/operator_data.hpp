// The operator's description of a run, given at its start: the source, the bed position, the subject.
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "config/nuclides/nuclides.hpp"
#include "daemon/coverage/coverage.hpp"

namespace petacq::daemon {

/// An activity comes with a nuclide and the time of its assay.
struct OperatorData {
    std::optional<config::Nuclide> nuclide;
    std::optional<std::string> nuclide_source;  ///< of the values of a nuclide that was declared
    std::optional<double> activity_MBq;         // NOLINT(readability-identifier-naming): a unit
    std::optional<std::chrono::system_clock::time_point> assay;
    std::optional<double> bed_mm;
    std::optional<std::string> subject;
    std::map<std::string, std::string> keys;
};

/// Checks `nuclide`, `half_life_s`, `branching_ratio`, `nuclide_source`, `activity_MBq`, `assay_utc`,
/// `bed_mm`, `subject` and `keys` of a JSON object for a run that starts then, and ignores its other members;
/// null has none. Throws std::invalid_argument with the reason of a refusal. docs/reference/control.md has
/// the rules.
OperatorData operator_data(const nlohmann::json& said, std::chrono::system_clock::time_point start);

/// The source for a coverage; nothing without a nuclide.
std::optional<StatedActivity> stated_activity(const OperatorData& data);

/// The object "operator" of run.json for a run that started then: what was said, and what follows from it
/// (`half_life_s`, `branching_ratio`, `activity_at_start_MBq`). Null if nothing was said.
nlohmann::json to_json(const OperatorData& data, std::chrono::system_clock::time_point start);

}  // namespace petacq::daemon

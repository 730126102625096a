// What a daily check finds: parts of the detector that have changed by more than a limit and by more than
// chance.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "tools/petcal/check/changes.hpp"

namespace petacq::petcal {

/// From which change on a part is named. It must also be above 6.5 standard deviations.
struct CheckLimits {
    double time_ns = 0.1;
    double photopeak_percent = 1;
    double resolution_percent = 15;
    double counts_percent = 30;  ///< share of the singles; prompts per single
    double efficiency_percent = 8;
    double spots_percent = 10;  ///< of the distance between spots
};

struct CheckFinding {
    enum class Subject : std::uint8_t { times, photopeak, resolution, singles, efficiency, prompts, spots };

    Subject subject = Subject::times;
    double size = 0;                      ///< ns; relative; of spots: in distances between them
    std::optional<std::uint32_t> bdm;     ///< none: all modules
    std::optional<std::uint32_t> du;      ///< none: the whole module
    std::vector<std::uint32_t> crystals;  ///< single crystals of the unit; empty: the whole unit
    std::string text;                     ///< "BDM 7: its times differ by -1.02 ns from the reference"
};
const char* name_of(CheckFinding::Subject subject);

enum class Verdict : std::uint8_t {
    pass,
    look,  ///< only single crystals have changed
    fail,  ///< detector units, modules or all
};
const char* name_of(Verdict verdict);
Verdict verdict_of(const std::vector<CheckFinding>& findings);

/// By subject, each from large parts to small ones: a part is compared with the reference, changed as the
/// part that contains it was found to be. Throws config::Error if the errors are too large for the limits.
std::vector<CheckFinding> find_in_changes(const config::Geometry& geometry, const DetectorChanges& changes,
                                          const CheckLimits& limits);

/// Findings about counts say which share of the data of their module did not arrive in the two runs: counts
/// that were lost are no fault of the detector.
void name_loss(std::vector<CheckFinding>& findings, const daemon::LiveSums& reference,
               const daemon::LiveSums& run);

/// What cannot be checked because errors are too large for the limits: what was expected and what was found.
std::vector<std::string> insufficient_data(const config::Geometry& geometry, const DetectorChanges& changes,
                                           const CheckLimits& limits);

}  // namespace petacq::petcal

// The page of a daily check.
#pragma once

#include <filesystem>
#include <vector>

#include "tools/petcal/check/changes.hpp"
#include "tools/petcal/check/findings.hpp"

namespace petacq::petcal {

/// Modules that the findings name, in ascending order.
std::vector<std::uint32_t> modules_of(const std::vector<CheckFinding>& findings);

/// The figures of a module; unknown ones have an infinite error.
struct ModuleChanges {
    Change time_ns;
    Change photopeak;  ///< relative, like the next four
    Change resolution;
    Change singles;
    Change efficiency;
    Change prompts;
    Change spots;  ///< of the unit that has moved most
};
std::vector<ModuleChanges> by_module(const config::Geometry& geometry, const DetectorChanges& changes);

/// Verdict, findings, what could not be checked, table of modules, maps of crystals, and pictures of the
/// units that were found. Throws std::system_error.
void write_check_page(const std::filesystem::path& file, const DailyRun& reference, const DailyRun& run,
                      const DetectorChanges& changes, const std::vector<CheckFinding>& findings,
                      const std::vector<std::string>& unchecked, const CheckLimits& limits);

}  // namespace petacq::petcal

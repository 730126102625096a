// What the watch over the detector finds in the seconds of a run: the same as during the run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "daemon/detector/detector_watch.hpp"

namespace petacq::petlm {

/// A fault from its first second to its last; less than five seconds without it do not end it.
struct DetectorFinding {
    daemon::DetectorFault fault;  ///< its largest size
    double until_s = 0;           ///< of the run
};

/// A BDM above the temperature that health allows, from the first second with it to the last.
struct HotModule {
    std::uint32_t bdm = 0;
    double highest_C = 0;
    double since_s = 0;
    double until_s = 0;
};

struct DetectorFindings {
    std::vector<DetectorFinding> findings;  ///< in the order in which they began
    std::vector<HotModule> hot;             ///< the hottest first
    double max_temperature_C = 0;           ///< of the configuration
    daemon::ModuleTable start;              ///< the start of the run
    daemon::ModuleTable run;                ///< the whole run
    daemon::ModuleTable reference;          ///< empty: there is none
    std::string reference_name;
    double tick_ns = 0;
    std::string trouble;  ///< what could not be read; empty: nothing

    [[nodiscard]] std::size_t count() const { return findings.size() + hot.size(); }
    /// A line for each of the findings.
    [[nodiscard]] std::vector<std::string> lines() const;
};

/// Compares with the run that `reference` names, or else with the one that the configuration of the run does.
/// Nothing if the run has no seconds that can be used.
std::optional<DetectorFindings> find_in_detector(const std::filesystem::path& run,
                                                 std::optional<std::filesystem::path> reference);

}  // namespace petacq::petlm

// What the watch over the detector finds in the seconds of a run: the same as during the run.
#pragma once

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

struct DetectorFindings {
    std::vector<DetectorFinding> findings;  ///< in the order in which they began
    daemon::ModuleTable start;              ///< the start of the run
    daemon::ModuleTable run;                ///< the whole run
    daemon::ModuleTable reference;          ///< empty: there is none
    std::string reference_name;
    double tick_ns = 0;
    std::string trouble;  ///< what could not be read; empty: nothing
};

/// Compares with the run that `reference` names, or else with the one that the configuration of the run does.
/// Nothing if the run has no seconds that can be used.
std::optional<DetectorFindings> find_in_detector(const std::filesystem::path& run,
                                                 std::optional<std::filesystem::path> reference);

}  // namespace petacq::petlm

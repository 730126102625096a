// What a daily check compares of a run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/spectra.hpp"
#include "daemon/detector/module_sums.hpp"
#include "daemon/reference/recorded_detector.hpp"
#include "daemon/seconds/live_sums.hpp"

namespace petacq::petcal {

/// Modules of a scanner that can be checked: the true pairs of each two of them are kept.
inline constexpr std::uint32_t max_checked = 4096;

struct DailyRun {
    std::filesystem::path directory;
    std::string started;  ///< UTC; empty: unknown
    config::Scanner scanner;
    config::Spectra spectra;
    double length_s = 0;
    daemon::DetectorSums sums;    ///< over the run
    std::vector<double> singles;  ///< [crystal]
    daemon::LiveSums live;        ///< of the data of each module that arrived
    std::vector<double>
        module_true;  ///< [a * modules + b], symmetric: prompts less the randoms to be expected
};

/// A run that is complete and has spectra. Throws config::Error that says what was expected.
DailyRun load_daily_run(const std::filesystem::path& directory);

/// The earlier run, in the same way. Throws config::Error also if it cannot be compared with the run: another
/// scanner, calibration, nuclide, energy window or conditions on coincidences. An empty directory: the one
/// that the configuration of the run names.
DailyRun load_daily_reference(const std::filesystem::path& directory, const std::filesystem::path& run);

}  // namespace petacq::petcal

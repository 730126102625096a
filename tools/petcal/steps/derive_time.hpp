// petcal derive time: time offsets of a calibration from the run of a known source.
#pragma once

#include <filesystem>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petcal/results/derived_times.hpp"

namespace petacq::config {
struct Written;
}

namespace petacq::petcal {

struct DeriveTimeOptions {
    std::filesystem::path calibration;  ///< with which the run was taken
    std::filesystem::path run;          ///< run directory with coincidences
    std::filesystem::path output;       ///< calibration to write
    /// One of the two, mm: x, y, z, radius, length of a cylinder along the axis; x, y, z of a point.
    std::vector<double> cylinder;
    std::vector<double> point;
    std::filesystem::path report = {};  ///< HTML file to write; empty: none
};

/// Finds the offsets from the prompts of the run and writes `calibration` with them added, rounded to ticks.
/// Delayeds are not needed: randoms do not move the offsets. Reads at most 2000 prompts per crystal. Throws
/// config::Error when the calibration is not that of the run, when it does not fit the scanner, or when the
/// data are insufficient (estimate::time_offsets), and when the run cannot be read.
DerivedTimes derive_times(const config::Scanner& scanner, const DeriveTimeOptions& options);

/// Derives them, writes the report and returns the figures. Throws as derive_times, and std::system_error.
config::Written derive_time(const config::Scanner& scanner, const DeriveTimeOptions& options);

}  // namespace petacq::petcal

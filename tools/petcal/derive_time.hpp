// Time offsets of a calibration from the run of a known source.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "config/scanner.hpp"
#include "tools/petcal/derive/pairs/time_offsets.hpp"

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

struct DerivedTimes {
    derive::TimeOffsets offsets;
    std::uint64_t prompts = 0;  ///< read; no more than are of use
    std::uint64_t missed = 0;   ///< of these, their line misses the source
    double tick_ps = 0;
    /// Of some pairs: time difference less what the path difference makes, before and after.
    std::vector<double> before_ps;
    std::vector<double> after_ps;
};

/// Finds the offsets from the prompts of the run and writes `calibration` with them added, rounded to ticks.
/// Delayeds are not needed: randoms do not move the offsets. Reads at most 2000 prompts per crystal. Throws
/// config::Error when the calibration is not that of the run, when it does not fit the scanner, or when the
/// data are insufficient (derive::time_offsets), and when the run cannot be read.
DerivedTimes derive_times(const config::Scanner& scanner, const DeriveTimeOptions& options);

/// Derives them, writes the report and prints the figures. Throws as derive_times, and std::system_error.
void derive_time(const config::Scanner& scanner, const DeriveTimeOptions& options);

}  // namespace petacq::petcal

// The calibration with which frames are converted, as status, log and runs name it.
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "config/calibration.hpp"

namespace petacq::daemon {

struct CalibrationInUse {
    std::filesystem::path file;
    std::string sha256;
    std::string made_by;                          ///< the program, as the file says; empty: it does not
    std::string created_utc;                      ///< likewise
    std::optional<double> coincidence_fwhm_ps;    ///< time resolution of a pair, likewise
    double energy_factor_spread;                  ///< config::factor_spread()
    std::chrono::system_clock::time_point taken;  ///< when it came into use
};

/// `calibration`, from `file`, comes into use now.
CalibrationInUse in_use_now(const config::Calibration& calibration, const std::filesystem::path& file);
/// Part of `calibration` of the status document.
nlohmann::json to_json(const CalibrationInUse& calibration);
/// For the log: "my.h5 (SHA-256 0123456789ab, petcal apply 1.0 of 2026-01-01T00:00:00Z)".
std::string described(const CalibrationInUse& calibration);

}  // namespace petacq::daemon

// Reads the configuration, and the calibration that it names, again while the daemon runs.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/calibration.hpp"
#include "config/configuration.hpp"
#include "daemon/run/run.hpp"

namespace petacq::daemon {

/// A calibration that is to come into use.
struct NewCalibration {
    std::shared_ptr<const config::Calibration> content;
    std::filesystem::path file;
    std::string configured;  ///< the file, as the configuration has it
};

struct Reloaded {
    /// The running configuration with the changes that do not need a restart.
    std::shared_ptr<const config::Configuration> configuration;
    std::vector<std::string> changed;        ///< keys with another value than before, as JSON pointers
    std::vector<std::string> needs_restart;  ///< keys that differ in the file and keep their value
    /// Absent: the one in use is the one that the file names. The configuration above has the one in use.
    std::optional<NewCalibration> calibration;
};

/// Reads the files, which takes as long as the disk does: not in the control thread. `calibration`, its
/// content, `log_level` and the keys of `health` can change. `in_use`: SHA-256 of the calibration in use.
/// Throws config::Error if the configuration as a whole or the calibration is not valid.
Reloaded reload(const std::filesystem::path& file, const config::Configuration& running,
                const config::Geometry& geometry, const std::string& in_use);

/// Applies the changes, but for the calibration, to `setting` and logs them.
void apply(const Reloaded& reloaded, const std::filesystem::path& file, RunSetting& setting);

}  // namespace petacq::daemon

// Reads the configuration again while the daemon runs.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "daemon/run/run.hpp"

namespace petacq::daemon {

struct Reloaded {
    /// The running configuration with the changes that do not need a restart.
    std::shared_ptr<const config::Configuration> configuration;
    std::vector<std::string> changed;        ///< keys with another value than before, as JSON pointers
    std::vector<std::string> needs_restart;  ///< keys that differ in the file and keep their value
};

/// Reads the file, which takes as long as the disk does: not in the control thread. `log_level` and the keys
/// of `health` can change. Throws config::Error if the file as a whole is not valid.
Reloaded reload(const std::filesystem::path& file, const config::Configuration& running);

/// Applies the changes to `setting` and logs them.
void apply(const Reloaded& reloaded, const std::filesystem::path& file, RunSetting& setting);

}  // namespace petacq::daemon

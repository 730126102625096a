// Reading the configuration again while the daemon runs.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "daemon/run.hpp"

namespace petacq::daemon {

struct Reloaded {
    /// What runs from now on: as before, with the changes that are possible while running.
    std::shared_ptr<const config::Configuration> configuration;
    std::vector<std::string> changed;        ///< keys that are different now, as JSON pointers
    std::vector<std::string> needs_restart;  ///< keys that differ in the file and stay as they were
};

/// `log_level` and everything in `health` can change. Throws config::Error when the file is not a good
/// configuration as a whole.
Reloaded reload(const std::filesystem::path& file, const config::Configuration& running);

/// The same for the running daemon, with a log of what came of it. Changes nothing when the file is not good.
void reload_configuration(const std::filesystem::path& file, RunSetting& setting);

}  // namespace petacq::daemon

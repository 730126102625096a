// The results of petcal derive activity --by-coincidence, as a file.
#pragma once

#include <filesystem>

#include "tools/petcal/activity/activity_by_coincidence.hpp"

namespace petacq::petcal {

/// Throws config::IoError.
void save(const std::filesystem::path& file, const ActivityByCoincidenceOptions& options,
          const estimate::CoincidenceCounts& counts, const ActivityByCoincidence& found);

}  // namespace petacq::petcal

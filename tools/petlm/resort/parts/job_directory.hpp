// The directory of a run whose parts any number of processes make, one after the other or at the same time.
// Its job.json says what the parts are of, so that parts of other runs or settings are not mixed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "tools/petlm/resort/search/engines.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::petlm {

constexpr const char* job_file = "job.json";

/// What the parts depend on.
nlohmann::json job_identity(const Inputs& inputs, const Engines& engines, std::size_t shards);

/// Writes job.json unless it is there. The directory exists. Throws UsageError if it is there and differs.
void agree_on_job(const std::filesystem::path& directory, const nlohmann::json& identity);

/// The name under which this process writes a file until it is complete. Other processes that write the same
/// file, such as a task and the one that replaces it, use other names.
std::filesystem::path own_partial(const std::filesystem::path& file);
/// Removes what processes that were killed have left in the directory. REQUIRES: no process makes parts.
void remove_partial_parts(const std::filesystem::path& directory);

}  // namespace petacq::petlm

// job.json in the directory of a run that is made of parts: it says what the parts are of, so that parts of
// other runs or settings are not mixed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/petlm/resort/search/engines.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::petlm {

constexpr const char* job_file = "job.json";

/// What the parts depend on.
nlohmann::json job_identity(const Inputs& inputs, const Engines& engines, std::size_t shards);

/// Writes job.json unless it is there. The directory exists. Throws UsageError if it is there and differs.
void agree_on_job(const std::filesystem::path& directory, const nlohmann::json& identity);

/// Throws UsageError, which ends with `remedy`, if job.json is that of other parts.
void check_job(const std::filesystem::path& directory, const nlohmann::json& identity,
               const std::string& remedy);

}  // namespace petacq::petlm

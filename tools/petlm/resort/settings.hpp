// The configuration with which the coincidences of runs are found again.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "config/configuration.hpp"
#include "gpu/pipeline.hpp"
#include "tools/petlm/commands.hpp"

namespace petacq::petlm {

/// Most singles in a slice of a worker's pipeline.
inline constexpr std::uint32_t cpu_slice_singles = 1U << 18;
inline constexpr std::uint32_t gpu_slice_singles = 1U << 20;
/// Workers of one GPU: one reads while the pipeline of another is busy.
inline constexpr unsigned gpu_workers = 4;
/// Singles in a shard, unless told otherwise.
inline constexpr std::uint64_t default_shard_singles = 16U << 20;

/// The configuration of the run with the given settings replaced, for pipelines of one thread. Throws
/// UsageError for an energy window that exceeds that of the saved singles, config::Error.
config::Configuration resort_configuration(const nlohmann::json& run, const ResortOptions& options,
                                           std::uint32_t slice_singles);

/// The energies of the singles that the pipeline takes.
gpu::EnergyWindow accepted_energies(const config::Configuration& configuration);

}  // namespace petacq::petlm

// What finds the coincidences: the settings, and the pipelines that work with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "config/configuration.hpp"
#include "config/scanner/scanner.hpp"
#include "daemon/coverage/coverage.hpp"
#include "daemon/listmode/format.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/rules/coincidence_rules.hpp"
#include "tools/petlm/resort/search/options.hpp"
#include "tools/petlm/resort/search/shard_search.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::petlm {

struct Engines {
    config::Configuration configuration;
    config::Scanner scanner;
    gpu::CoincidenceRules rules;
    std::size_t workers = 1;
    std::uint32_t slice_singles = 0;
    unsigned gpus = 0;  ///< 0: the CPU

    /// {"coincidence": ..., "energy": ...}, and "gammas" if there are any.
    [[nodiscard]] nlohmann::json settings() const;
    /// That of a file of records of this kind: of the run that the result is, with what is known of the
    /// singles. `covered`: what its coincidences cover.
    [[nodiscard]] nlohmann::json description(daemon::RecordKind kind, const Inputs& inputs,
                                             daemon::Coverage covered) const;
    [[nodiscard]] std::uint64_t ticks_per_s() const;
    /// The energies of the singles that the pipelines take.
    [[nodiscard]] gpu::EnergyWindow energies() const;
    /// A search for one worker, in its thread. Workers share the GPUs in turn.
    [[nodiscard]] std::unique_ptr<ShardSearch> make_search(std::size_t worker) const;
};

/// The settings of the run (run.json) with those given replaced. Throws UsageError, config::Error.
Engines engines_for(const nlohmann::json& run, const ResortOptions& options);

}  // namespace petacq::petlm

// What petlm resort and petlm-mpi are asked for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::petlm {

/// One of several equal shares, counted from 1.
struct Share {
    std::uint32_t number = 1;
    std::uint32_t of = 1;
};

struct ResortOptions {
    InputOptions input;
    std::filesystem::path output;  ///< list-mode file (NAME.plm), or else the directory of a run
    bool force = false;            ///< replace the output
    bool as_json = false;          ///< print what was written as JSON
    std::optional<Share> part;     ///< only make this share of the parts of the run
    bool join = false;             ///< only make the run of its parts
    // Settings that are not given are those of the run.
    std::optional<std::uint32_t> window_ticks;
    std::optional<std::string> window_ns;  ///< decimal; instead of window_ticks: in_ticks() (settings.hpp)
    std::optional<std::string> window_mode;
    std::optional<std::string> multiples_policy;
    std::optional<std::uint32_t> max_multiplicity;
    std::optional<std::uint32_t> min_module_difference;
    std::optional<std::uint32_t> max_ring_difference;
    std::optional<std::uint64_t> delay_ticks;
    std::optional<std::string> delay_ns;  ///< decimal; instead of delay_ticks
    bool no_delay = false;
    std::optional<std::string> delayeds;
    std::optional<double> lower_keV;        // NOLINT(readability-identifier-naming): the unit's spelling
    std::optional<double> upper_keV;        // NOLINT(readability-identifier-naming)
    bool no_gammas = false;                 ///< no gammas and triples
    std::optional<double> gamma_lower_keV;  // NOLINT(readability-identifier-naming)
    std::optional<double> gamma_upper_keV;  // NOLINT(readability-identifier-naming)
    std::optional<std::uint64_t> gamma_before_ticks;
    std::optional<std::string> gamma_before_ns;  ///< decimal; instead of gamma_before_ticks
    std::optional<std::uint64_t> gamma_after_ticks;
    std::optional<std::string> gamma_after_ns;  ///< decimal; instead of gamma_after_ticks
    std::optional<std::string> gamma_policy;
    std::optional<std::uint64_t> gamma_delay_ticks;
    std::optional<std::string> gamma_delay_ns;  ///< decimal; instead of gamma_delay_ticks
    bool no_gamma_delay = false;
    std::string backend = "auto";
    std::optional<std::uint32_t> threads;  ///< workers; absent or 0: one for each core, or a few per GPU
    std::optional<unsigned> gpus;          ///< absent: all that can be used
    /// That a worker searches at once, about. Absent: 4 Mi, or 16 Mi where each shard becomes a file.
    std::optional<std::uint64_t> shard_singles;
};

}  // namespace petacq::petlm

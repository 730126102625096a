// The commands that are implemented outside main.cpp. Each returns an exit status (records/status.hpp) and
// throws UsageError, BadInput, daemon::NotListMode, config::Error, or std::system_error for I/O.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gpu/types.hpp"
#include "tools/petlm/resort/inputs.hpp"

namespace petacq::petlm {

struct InfoOptions {
    std::filesystem::path target;  ///< file or run directory
    bool as_json = false;
};
/// Describes a file, or the files of a run directory, on standard output.
int info(const InfoOptions& options);

struct DumpOptions {
    std::filesystem::path target;        ///< file, or run directory: its coincidences
    std::optional<gpu::Kind> kind;       ///< only pairs of this kind
    bool seconds = false;                ///< of a run directory, its seconds
    std::optional<std::string> field;    ///< of seconds: this field instead of all that are one number
    std::optional<std::uint64_t> limit;  ///< at most this many records
};
/// Prints records as CSV on standard output. Ends quietly when the reader of standard output goes away.
int dump(const DumpOptions& options);

/// Checks files or run directories, all of them even if one is bad. Returns the highest status of all.
int verify(const std::vector<std::filesystem::path>& targets);

/// The number-th of so many equal shares, from 1.
struct Share {
    std::uint32_t number = 1;
    std::uint32_t of = 1;
};

struct ResortOptions {
    InputOptions input;
    std::filesystem::path output;  ///< list-mode file (NAME.plm), or else the directory of a run
    bool force = false;            ///< replace the output
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
    std::optional<double> lower_keV;  // NOLINT(readability-identifier-naming): the unit's spelling
    std::optional<double> upper_keV;  // NOLINT(readability-identifier-naming)
    std::string backend = "auto";
    std::optional<std::uint32_t> threads;  ///< workers; absent or 0: one for each core, or a few per GPU
    std::optional<unsigned> gpus;          ///< absent: all that can be used
    /// That a worker searches at once, about. Absent: 4 Mi, or 16 Mi where each shard becomes a file.
    std::optional<std::uint64_t> shard_singles;
};
/// Finds coincidences from the singles of a run, or of the runs of several hosts: the records that one host
/// would have written with these settings. A run that is written has the seconds, too: what the singles do
/// not tell is that of the seconds of the runs, or unknown.
int resort(const ResortOptions& options);

}  // namespace petacq::petlm

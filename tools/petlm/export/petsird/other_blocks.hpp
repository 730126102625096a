// The time blocks of a PETSIRD file that hold no events, but for singles and dead time: signals, bed
// positions, angles of the scanner. They come from the tags of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/base/records.hpp"
#include "tools/petlm/export/petsird/bins.hpp"
#include "tools/petlm/export/petsird/time_blocks.hpp"

namespace petacq::petsird {

/// The kinds of time blocks, by their numbers in the file.
enum class BlockKind : std::uint8_t { events, signal, bed, gantry, dead_time, singles };

struct OtherBlock {
    std::uint64_t begin_ms = 0;
    std::string bytes;
};

/// The head of a time block: the next item of the stream, its kind and its time.
Coded block_head(BlockKind kind, BlockTime time);

/// The tags of a channel and a kind.
struct Signal {
    std::uint32_t id = 0;
    std::uint32_t type = 0;  ///< number in the format
    std::string description;
};

struct TagBlocks {
    std::vector<Signal> signals;
    std::vector<OtherBlock> blocks;  ///< in the order of time
    std::vector<std::string> not_held;
};

/// `tags`: of all channels, in order; absent: the run has none. `bed_mm`: the position that the operator said
/// at the start. Throws petlm::UsageError for options that do not fit the tags, petlm::BadInput where the
/// angle of a scanner that turns is unknown.
TagBlocks tag_blocks(const std::optional<std::vector<gpu::Tag>>& tags, std::optional<double> bed_mm,
                     const std::optional<config::Rotation>& rotation, const PetsirdOptions& options,
                     const TimeBlocks& time, std::size_t types);

/// Throws petlm::UsageError for a --signal that is no CHANNEL=TYPE.
void check_signals(const PetsirdOptions& options);

}  // namespace petacq::petsird

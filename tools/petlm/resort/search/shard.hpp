// Shards: stretches of detector time that are searched for coincidences independently of each other.
//
// A shard holds the groups that open in it. It begins where a group opens whatever lies before
// (group_start.hpp), and its search looks past its end, as far as windows, delayed windows and the gammas of
// its groups reach. The coincidences of all shards, one after the other, are those of one search over
// everything.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gpu/base/records.hpp"
#include "gpu/interval_sums.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/rules/coincidence_rules.hpp"
#include "gpu/second_cuts.hpp"
#include "tools/petlm/resort/search/gamma_border.hpp"
#include "tools/petlm/resort/singles/singles_files.hpp"

namespace petacq::petlm {

/// In a shard, about, if nothing else is asked for.
constexpr std::uint64_t shard_singles = 4U << 20U;
/// The same where each shard becomes a file.
constexpr std::uint64_t part_singles = 16U << 20U;

/// How far shards go.
struct ShardLimits {
    std::uint64_t singles = 0;         ///< in a shard, about
    std::uint64_t ticks = UINT64_MAX;  ///< the least length of a shard with fewer singles
    std::size_t shards = SIZE_MAX;     ///< at most
};

/// The next shards, the first of which begins where the range does. None ends after the range, and what is
/// too short for a shard is left.
std::vector<gpu::TickRange> next_shards(std::span<const SinglesFiles> runs, gpu::TickRange range,
                                        const ShardLimits& limits);

/// Divides the interval where about `singles` have been passed. The first shard begins at the interval's
/// begin, the last one ends at its end.
std::vector<gpu::TickRange> plan_shards(std::span<const SinglesFiles> runs, gpu::TickRange interval,
                                        std::uint64_t singles);

/// How far the search of a shard looks past its end: to where the next shard begins, and from there as far as
/// windows, delayed windows and gammas reach.
std::uint64_t reach_of(const gpu::CoincidenceRules& rules);

/// What a shard adds to the run, apart from its records.
struct ShardSums {
    gpu::FrameCounts taken;  ///< the singles of the shard
    gpu::SingleCounts counts;
    /// The seconds in which the shard lies, by their begin, and the sums over the part of them in the shard.
    std::vector<std::pair<std::uint64_t, gpu::IntervalSums>> sums;
    std::optional<GammaBorder> border;  ///< if gammas are looked for; absent: nothing was searched
};

/// What the search of a shard found.
struct ShardResult : ShardSums {
    gpu::TickRange range;                                           ///< where its groups may open
    std::vector<gpu::RecordVector<gpu::Coincidence>> coincidences;  ///< in order
    gpu::RecordVector<gpu::Triple> triples;                         ///< of these, in order
};

}  // namespace petacq::petlm

// The part of the result that comes from one shard: a file of coincidences and, beside it, what else the
// shard adds to the run. Both have their names only once they are on the disk: a job that is started again
// goes on after the parts that are there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <vector>

#include "config/geometry.hpp"
#include "daemon/listmode/series.hpp"
#include "tools/petlm/resort/search/shard.hpp"

namespace petacq::petlm {

/// All but the coincidences.
struct PartState {
    std::uint64_t begin = 0;  ///< where its first group may open
    std::uint64_t end = 0;    ///< where the next part begins
    std::uint64_t records = 0;
    std::uint64_t first_time = 0;  ///< of the records; 0 without any
    std::uint64_t last_time = 0;
    std::uint64_t bytes = 0;  ///< of the file
    gpu::FrameCounts taken;
    gpu::SingleCounts counts;
    std::vector<std::pair<std::uint64_t, gpu::IntervalSums>> sums;  ///< as ShardResult
};

/// "coincidences-0001.plm" for shard 0.
std::string part_name(std::size_t shard);
/// "coincidences-0001.state"
std::string state_name(std::size_t shard);

std::vector<std::byte> encode(const PartState& state);
/// Absent if the bytes are not those of a state, or of another scanner.
std::optional<PartState> decode(std::span<const std::byte> bytes, const config::Geometry& geometry);

/// Writes both files; processes that write the same part do not disturb each other. Returns what the second
/// one holds. Throws std::system_error.
PartState write_part(const std::filesystem::path& directory, std::size_t shard, const ShardResult& result,
                     std::uint32_t block_bytes, const nlohmann::json& description);

/// Removes all parts but the first `keep`, also what is left of some. Others may do so at the same time.
void remove_parts_after(const std::filesystem::path& directory, std::size_t keep);

/// The part in the directory, if it is complete.
std::optional<PartState> read_part(const std::filesystem::path& directory, std::size_t shard,
                                   const config::Geometry& geometry);

}  // namespace petacq::petlm

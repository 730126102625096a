// The part of the result that comes from one shard: a file of coincidences, with gammas one of triples, and
// beside them what else the shard adds to the run. They have their names only once they are on the disk: a
// job that is started again continues after the parts that are there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "daemon/coverage/coverage.hpp"
#include "daemon/listmode/format.hpp"
#include "tools/petlm/resort/search/engines.hpp"
#include "tools/petlm/resort/search/shard.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::petlm {

/// A file of records.
struct PartFile {
    std::uint64_t records = 0;
    std::uint64_t first_time = 0;  ///< of the records; 0 without any
    std::uint64_t last_time = 0;
    std::uint64_t bytes = 0;  ///< 0: there is no such file
};

/// All but the records.
struct PartState : ShardSums {
    std::uint64_t begin = 0;  ///< where its first group may open
    std::uint64_t end = 0;    ///< where the next part begins
    PartFile coincidences;
    PartFile triples;
};

/// "coincidences-0001.plm" for shard 0.
std::string part_name(std::size_t shard, daemon::RecordKind kind = daemon::RecordKind::coincidences);
/// "coincidences-0001.state"
std::string state_name(std::size_t shard);

std::vector<std::byte> encode(const PartState& state);
/// Absent if the bytes are not those of a state, or of another scanner.
std::optional<PartState> decode(std::span<const std::byte> bytes, const config::Geometry& geometry);

/// The name under which this process writes a file until it is complete. Other processes that write the same
/// file, such as a task and the one that replaces it, use other names.
std::filesystem::path own_partial(const std::filesystem::path& file);

/// Writes the files; processes that write the same part do not disturb each other. `covered`: by all parts.
/// Throws BadInput if singles named crystals that the scanner does not have, std::system_error.
void write_part(const std::filesystem::path& directory, std::size_t shard, const ShardResult& result,
                const Inputs& inputs, const Engines& engines, const daemon::Coverage& covered);

/// Removes all parts but the first `keep`, also what is left of some. Others may do so at the same time.
void remove_parts_after(const std::filesystem::path& directory, std::size_t keep);

/// Removes what processes that were killed have left in the directory. REQUIRES: no process makes parts.
void remove_partial_parts(const std::filesystem::path& directory);

/// The part in the directory, if it is complete.
std::optional<PartState> read_part(const std::filesystem::path& directory, std::size_t shard,
                                   const config::Geometry& geometry);

}  // namespace petacq::petlm

// The sums of shards until the end of the run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <utility>

#include "config/scanner/geometry.hpp"
#include "gpu/interval_sums.hpp"
#include "tools/petlm/resort/search/shard.hpp"

namespace petacq::petlm {

/// Seconds are made only once it is known what the boards have reported: when all hosts have ended. Until
/// then their sums, as large as the seconds, are in a file without a name. Shards are shorter than seconds,
/// or longer: the sums of a second are there once. One thread at a time. Throws std::system_error.
class SecondSums {
  public:
    /// The file is in this directory.
    SecondSums(const std::filesystem::path& directory, const config::Geometry& geometry,
               std::uint64_t ticks_per_s);

    /// Of the next shard. They are settled (gamma_border.hpp).
    void add(const ShardSums& shard);
    /// There are no more: hands them over in order.
    void take(const std::function<void(ShardSums&)>& use);

  private:
    void write();
    void check(bool good) const;

    const std::filesystem::path directory_;
    const config::Geometry geometry_;
    const std::uint64_t ticks_per_s_;
    std::fstream file_;
    std::optional<std::pair<std::uint64_t, gpu::IntervalSums>> open_;  ///< a second that may go on
    ShardSums all_;                                                    ///< of all shards, but for the seconds
};

}  // namespace petacq::petlm

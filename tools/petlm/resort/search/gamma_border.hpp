// A gamma near the border of two shards may belong to pairs of both. Each shard counts its own pairs; what it
// tells of such gammas makes the sums those of one search over everything.
#pragma once

#include <cstdint>
#include <vector>

namespace petacq::petlm {

/// What a shard tells of gammas that pairs of other shards may use. Neighbours see the same gammas at their
/// border, in the same order.
struct GammaBorder {
    static constexpr std::uint32_t nowhere = UINT32_MAX;
    /// Positions in ShardSums::sums.
    struct Counted {
        std::uint32_t used_in = nowhere;    ///< the second of its first triple in the shard
        std::uint32_t unused_in = nowhere;  ///< the second in which it was counted as unused
    };

    /// [gamma that pairs before the shard may use] where the shard has counted it.
    std::vector<Counted> first;
    /// [gamma that pairs after the shard may use] a pair of the shard has used it.
    std::vector<std::uint8_t> last;
    /// How far the first of `last` is behind the first of `first`.
    std::uint64_t last_from = 0;
};

struct ShardSums;

/// Settles the shards one after the other. One thread at a time.
class GammaBorders {
  public:
    /// Corrects the sums of the next shard: a gamma that a shard before has used is not used for the first
    /// time again, and not unused.
    void settle(ShardSums& shard);

  private:
    std::vector<std::uint8_t> used_;  ///< [gamma that pairs after the shards so far may use]
};

}  // namespace petacq::petlm

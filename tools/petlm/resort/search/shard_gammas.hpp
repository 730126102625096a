// The gammas of a shard, and the triples of its pairs with them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/base/records.hpp"
#include "gpu/rules/gamma_rules.hpp"
#include "gpu/tick_range.hpp"
#include "tools/petlm/resort/search/shard.hpp"

namespace petacq::petlm {

/// Pairs are the same with and without gammas, so these are taken out before the pairs are looked for. One
/// thread at a time.
class ShardGammas {
  public:
    /// `crystals`: of the scanner. Without rules, every single is one of a pair.
    ShardGammas(const std::optional<gpu::GammaRules>& rules, std::uint32_t crystals)
        : rules_(rules), crystals_(crystals) {}

    [[nodiscard]] bool any() const { return rules_.has_value(); }
    /// Begins a shard. No singles lie outside of `all`.
    void start(gpu::TickRange shard, gpu::TickRange all);
    /// Where the gammas of its pairs lie; without rules, the shard.
    [[nodiscard]] gpu::TickRange range() const { return range_; }
    /// Takes the gammas out of singles that are in order. The rest is valid until the next call.
    std::span<const gpu::Single> take(std::span<const gpu::Single> singles);
    /// All gammas and pairs of the shard are there: adds the triples and the counts.
    void finish(ShardResult& result);

  private:
    void find_triples(ShardResult& result);
    void count_unused(ShardResult& result, std::uint32_t second, std::uint64_t horizon);
    [[nodiscard]] std::size_t count_below(std::uint64_t time) const;

    const std::optional<gpu::GammaRules> rules_;
    const std::uint32_t crystals_;
    gpu::TickRange shard_;
    gpu::TickRange range_;
    bool last_ = false;  ///< no shard follows
    std::vector<gpu::Single> gammas_;
    std::vector<gpu::Single> rest_;
    std::vector<std::uint8_t> used_;  ///< [gamma]
    std::size_t done_ = 0;            ///< gammas that no pair still to come may use
    std::vector<gpu::Triple> triples_;
};

}  // namespace petacq::petlm

// How much a line counts for what comes from the source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpu/rules/pair_rule.hpp"
#include "tools/petcal/activity/source_lines.hpp"

namespace petacq::petcal {

/// Near the source a line counts 1. Around it a line counts so much less than 0 that lines whose ends have
/// nothing to do with each other add up to 0, as those of spurious pairs of a photon and a gamma do.
/// Thread-safe.
class LineWeights {
  public:
    /// `ends`: crystals in which photons of the source were found that have nothing to do with each other,
    /// such as gammas. Both references must outlive this.
    LineWeights(const SourceLines& lines, const gpu::PairRule& rule, std::span<const std::uint32_t> ends);

    struct Counted {
        std::size_t part = 0;  ///< of the source
        double weight = 0;
    };
    /// Of a pair that the rule calls good.
    [[nodiscard]] Counted of(std::uint32_t a, std::uint32_t b) const;
    /// 0 of any other pair.
    [[nodiscard]] double of_any(std::uint32_t a, std::uint32_t b) const {
        return rule_.good(a, b) ? of(a, b).weight : 0;
    }

  private:
    const SourceLines& lines_;
    const gpu::PairRule& rule_;
    double around_ = 0;
};

}  // namespace petacq::petcal

// The hits of a source in their order, and which of them pile up on an earlier one of their detector unit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/petsim/simulation/base/hit.hpp"

namespace petacq::sim {

class PileUp {
  public:
    /// Hits of a unit within this time of one are added to it.
    explicit PileUp(std::uint64_t ticks) : ticks_(ticks) {}

    /// Takes hits in order of raw time, besides those that wait. They must outlive the calls of next().
    void add(std::span<const Hit> hits);
    /// The next hit before `limit` that is not piled up on another one; nullptr: the others wait.
    const Hit* next(std::uint64_t limit) {
        while (next_ < hits_.size() && hits_[next_].raw_time < limit) {
            if (!piled(next_++)) return &hits_[next_ - 1];
        }
        return nullptr;
    }
    /// The hit that next() will return a little later, to prefetch it; nullptr: unknown.
    [[nodiscard]] const Hit* ahead() const {
        constexpr std::size_t distance = 11;
        return next_ + distance < hits_.size() ? &hits_[next_ + distance] : nullptr;
    }
    /// Passes on all hits that pile up on the last one of next().
    template <class Use>
    void take_later(Use use) {
        if (ticks_ == 0) return;
        const Hit& first = hits_[next_ - 1];
        for (std::size_t i = next_; i < hits_.size() && hits_[i].raw_time - first.raw_time < ticks_; ++i) {
            if (hits_[i].unit != first.unit || piled(i)) continue;
            piled_[i] = 1;
            use(hits_[i]);
        }
    }
    /// Keeps the hits that wait, after the last call of next(). They are few, unless the time offsets are
    /// longer than a chunk. Returns them.
    std::span<const Hit> keep();

  private:
    [[nodiscard]] bool piled(std::size_t hit) const { return ticks_ > 0 && piled_[hit] != 0; }

    std::uint64_t ticks_;
    std::span<const Hit> hits_;
    std::size_t next_ = 0;
    std::vector<std::uint8_t> piled_;  // [hit] whether an earlier one has taken it
    std::vector<Hit> waiting_;
    std::vector<Hit> merged_;
};

}  // namespace petacq::sim

#include "gpu/triples/triple_search.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>

namespace petacq::gpu {

namespace {

/// A window that moves over ordered gammas with the times of its pairs.
class GammaWindow {
  public:
    GammaWindow(std::span<const Single> gammas, const GammaRules& rules, std::uint64_t delay)
        : gammas_(gammas),
          starts_before_(rules.before - std::min(rules.before, delay)),
          starts_after_(delay - std::min(rules.before, delay)),
          ends_after_(delay + rules.after) {}

    void start_at(std::uint64_t time) {
        const auto from = std::partition_point(
            gammas_.begin(), gammas_.end(), [&](const Single& gamma) { return gamma.time < start_of(time); });
        first_ = static_cast<std::size_t>(from - gammas_.begin());
    }
    /// Moves on to the pair of this time. No time lies before the one of the call before.
    void move_to(std::uint64_t time) {
        pass_gammas_before(start_of(time));
        end_ = first_;
        if (starts_after_ > UINT64_MAX - time) return;
        const std::uint64_t last = time + std::min(ends_after_, UINT64_MAX - time);
        while (end_ < gammas_.size() && gammas_[end_].time <= last)
            ++end_;
    }
    [[nodiscard]] std::size_t first() const { return first_; }
    [[nodiscard]] std::size_t end() const { return end_; }

  private:
    /// Times have all 64 bits.
    [[nodiscard]] std::uint64_t start_of(std::uint64_t time) const {
        return time - std::min(starts_before_, time) + std::min(starts_after_, UINT64_MAX - time);
    }
    /// Few gammas lie between two pairs, but how many is not to be predicted: this takes four without a
    /// branch for each.
    void pass_gammas_before(std::uint64_t start) {
        for (std::size_t passed = 4; passed == 4 && gammas_.size() - first_ >= 4; first_ += passed) {
            const Single* const next = gammas_.data() + first_;
            passed = std::size_t{next[0].time < start} + std::size_t{next[1].time < start} +
                     std::size_t{next[2].time < start} + std::size_t{next[3].time < start};
        }
        while (first_ < gammas_.size() && gammas_[first_].time < start)
            ++first_;
    }

    std::span<const Single> gammas_;
    // The window of a pair, from its time. One of the first two is 0.
    std::uint64_t starts_before_;
    std::uint64_t starts_after_;
    std::uint64_t ends_after_;
    std::size_t first_ = 0;
    std::size_t end_ = 0;
};

std::int32_t gamma_dt(const Coincidence& pair, const Single& gamma, std::uint64_t delay) {
    return static_cast<std::int32_t>(static_cast<std::int64_t>(gamma.time - pair.time - delay));
}

}  // namespace

void find_triples(std::span<const Coincidence> pairs, std::span<const Single> gammas, const GammaRules& rules,
                  std::span<std::uint8_t> used, std::vector<Triple>& triples, GammaCounts& counts) {
    if (pairs.empty() || gammas.empty()) return;
    const std::uint64_t delay = rules.delay.value_or(0);
    GammaWindow coincident(gammas, rules, 0);
    GammaWindow delayed(gammas, rules, delay);
    coincident.start_at(pairs.front().time);
    if (rules.delay) delayed.start_at(pairs.front().time);

    const auto keep = [&](const Coincidence& pair, std::size_t i, ThirdPhoton third) {
        const Single& gamma = gammas[i];
        const std::int32_t dt = gamma_dt(pair, gamma, third == ThirdPhoton::delayed ? delay : 0);
        triples.push_back({pair, dt, gamma.crystal, gamma.energy, third});
        if (third == ThirdPhoton::delayed) {
            ++counts.delayed;
            return;
        }
        ++counts.triples;
        const bool again = std::atomic_ref(used[i]).exchange(1, std::memory_order_relaxed) != 0;
        ++(again ? counts.reused : counts.used);
    };
    const auto choose = [&](const Coincidence& pair, const GammaWindow& window, ThirdPhoton third) {
        const std::size_t first = window.first();
        const std::size_t end = window.end();
        if (first == end) return;
        if (rules.policy == GammaPolicy::all) {
            for (std::size_t i = first; i < end; ++i)
                keep(pair, i, third);
        } else if (rules.policy == GammaPolicy::only_one) {
            if (end - first == 1) keep(pair, first, third);
        } else {
            const std::uint64_t shift = third == ThirdPhoton::delayed ? delay : 0;
            const auto distance = [&](std::size_t i) {
                return std::abs(std::int64_t{gamma_dt(pair, gammas[i], shift)});
            };
            std::size_t best = first;
            for (std::size_t i = first + 1; i < end; ++i) {
                if (distance(i) < distance(best)) best = i;
            }
            keep(pair, best, third);
        }
    };
    for (const Coincidence& pair : pairs) {
        coincident.move_to(pair.time);
        choose(pair, coincident, ThirdPhoton::coincident);
        if (!rules.delay) continue;
        delayed.move_to(pair.time);
        choose(pair, delayed, ThirdPhoton::delayed);
    }
}

}  // namespace petacq::gpu

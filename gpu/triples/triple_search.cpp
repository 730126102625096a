#include "gpu/triples/triple_search.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>

namespace petacq::gpu {

namespace {

/// A window that moves over ordered gammas with the times of its pairs.
class Window {
  public:
    Window(std::span<const Single> gammas, const GammaRules& rules, std::uint64_t delay)
        : gammas_(gammas), before_(rules.before), after_(rules.after), delay_(delay) {}

    void start_at(std::uint64_t time) {
        const auto from = std::partition_point(gammas_.begin(), gammas_.end(),
                                               [&](const Single& gamma) { return is_before(gamma, time); });
        first_ = static_cast<std::size_t>(from - gammas_.begin());
    }
    /// Moves on to the pair of this time. No time lies before the one of the call before.
    void move_to(std::uint64_t time) {
        while (first_ < gammas_.size() && is_before(gammas_[first_], time))
            ++first_;
        end_ = first_;
        while (end_ < gammas_.size() && !is_after(gammas_[end_], time))
            ++end_;
    }
    [[nodiscard]] std::size_t first() const { return first_; }
    [[nodiscard]] std::size_t end() const { return end_; }

  private:
    // Times have all 64 bits: only differences that are not negative are formed, and sums of lengths.
    [[nodiscard]] bool is_before(const Single& gamma, std::uint64_t time) const {
        if (gamma.time < time) return delay_ > before_ || time - gamma.time > before_;
        return delay_ > before_ && gamma.time - time < delay_ - before_;
    }
    [[nodiscard]] bool is_after(const Single& gamma, std::uint64_t time) const {
        return gamma.time >= time && gamma.time - time > delay_ + after_;
    }

    std::span<const Single> gammas_;
    std::uint64_t before_;
    std::uint64_t after_;
    std::uint64_t delay_;
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
    Window coincident(gammas, rules, 0);
    Window delayed(gammas, rules, delay);
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
    const auto choose = [&](const Coincidence& pair, const Window& window, ThirdPhoton third) {
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

// The singles of a segment as the reference sees them, and the part of it that finds delayeds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/gpu/reference.hpp"

namespace petacq::test {

using Pair = std::pair<std::size_t, std::size_t>;

// The sorted singles of a segment, and the rules for their pairs.
struct Segment {
    const gpu::RecordVector<gpu::Single>& s;
    const config::Geometry& geometry;
    const gpu::CoincidenceRules& rules;

    [[nodiscard]] bool good(Pair p) const {
        return reference_good(geometry, rules, s[p.first].crystal, s[p.second].crystal);
    }
    [[nodiscard]] float energy_sum(Pair p) const { return s[p.first].energy + s[p.second].energy; }

    // The first of the pairs with the highest energy sum; pairs is not empty.
    [[nodiscard]] Pair winner(const std::vector<Pair>& pairs) const {
        Pair best = pairs.front();
        for (const Pair& p : pairs) {
            if (energy_sum(p) > energy_sum(best)) best = p;
        }
        return best;
    }

    // Applies the multiples policy to the candidates, which are in the order of (i, j).
    [[nodiscard]] std::vector<Pair> apply_policy(const std::vector<Pair>& candidates) const {
        std::vector<Pair> goods;
        for (const Pair& p : candidates) {
            if (good(p)) goods.push_back(p);
        }
        switch (rules.policy) {
            case gpu::MultiplesPolicy::remove_multiples:
                return {};
            case gpu::MultiplesPolicy::take_all_goods:
                return goods;
            case gpu::MultiplesPolicy::take_winner_of_goods:
                if (goods.empty()) return {};
                return {winner(goods)};
            case gpu::MultiplesPolicy::take_if_only_one_good:
                if (goods.size() != 1) return {};
                return goods;
            case gpu::MultiplesPolicy::take_winner_if_is_good:
                if (!good(winner(candidates))) return {};
                return {winner(candidates)};
            case gpu::MultiplesPolicy::take_winner_if_all_are_goods:
                if (goods.size() != candidates.size()) return {};
                return {winner(candidates)};
        }
        return {};
    }

    [[nodiscard]] gpu::Coincidence record(Pair p, gpu::Kind kind, std::uint64_t delay) const {
        const gpu::Single& a = s[p.first];
        const gpu::Single& b = s[p.second];
        const auto dt = static_cast<std::uint32_t>(b.time - a.time - delay);
        return {a.time, dt, a.crystal, b.crystal, a.energy, b.energy, kind};
    }
};

/// The rule delayed_window: each single opens a window.
void delayeds_of_openers(const Segment& segment, Decided& out);
/// The rule shifted_group.
void delayeds_of_groups(const Segment& segment, Decided& out);

}  // namespace petacq::test

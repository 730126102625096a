// The pairs that each policy takes from groups of many singles, for any order of the pairs.
#include <vector>

#include "gpu/base/records.hpp"
#include "gpu/rules/multiples.hpp"
#include "tests/gpu/base/random.hpp"
#include "tests/support/catch.hpp"

namespace {

using petacq::gpu::GroupPairs;
using petacq::gpu::MultiplesPolicy;
using petacq::gpu::PairRule;
using petacq::gpu::Single;
using petacq::gpu::WinningPair;
using petacq::test::Rng;

struct Member {
    const petacq::gpu::RecordVector<Single>* singles;
    const Single& operator()(std::uint32_t k) const { return (*singles)[k]; }
};

/// The definition of the policy.
std::vector<std::pair<std::uint32_t, std::uint32_t>> expected(const GroupPairs<Member>& group,
                                                              MultiplesPolicy policy) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> goods;
    for (std::uint32_t i = 0; i < (group.opener_only ? 1 : group.size); ++i) {
        for (std::uint32_t j = i + 1; j < group.size; ++j) {
            all.emplace_back(i, j);
            if (group.good(i, j)) goods.emplace_back(i, j);
        }
    }
    const auto winner = [&](const auto& pairs) {
        auto best = pairs.front();
        for (const auto& p : pairs) {
            if (group.member(p.first).energy + group.member(p.second).energy >
                group.member(best.first).energy + group.member(best.second).energy)
                best = p;
        }
        return best;
    };
    switch (policy) {
        case MultiplesPolicy::remove_multiples:
            return {};
        case MultiplesPolicy::take_all_goods:
            return goods;
        case MultiplesPolicy::take_winner_of_goods:
            if (goods.empty()) return {};
            return {winner(goods)};
        case MultiplesPolicy::take_if_only_one_good:
            if (goods.size() != 1) return {};
            return goods;
        case MultiplesPolicy::take_winner_if_is_good: {
            const auto best = winner(all);
            if (!group.good(best.first, best.second)) return {};
            return {best};
        }
        case MultiplesPolicy::take_winner_if_all_are_goods:
            if (goods.size() != all.size()) return {};
            return {winner(all)};
    }
    return {};
}

}  // namespace

TEST_CASE("multiples: each policy agrees with its definition for any order of the pairs") {
    Rng rng(41);
    for (int turn = 0; turn < 1000; ++turn) {
        const auto size = rng.between(3U, turn % 10 == 0 ? 200U : 40U);
        // Few crystals and energies: ties, and groups with no, one and all good pairs.
        const auto crystals = rng.chance(0.3) ? 100'000U : rng.between(1U, 60U);
        const auto energies = rng.between(1U, 5U);
        petacq::gpu::RecordVector<Single> singles(size, Single{});
        for (Single& s : singles) {
            s.crystal = rng.between(0U, crystals - 1);
            s.energy = static_cast<float>(rng.between(0U, energies)) * 100.1F;
        }
        PairRule rule;
        rule.crystals_in_ring = 60;
        rule.crystals_per_module = 5;
        rule.modules = 12;
        rule.min_module_difference = rng.between(0U, 3U);
        for (const bool opener_only : {false, true}) {
            const GroupPairs group{size, opener_only, rule, Member{&singles}};
            for (const auto policy :
                 {MultiplesPolicy::remove_multiples, MultiplesPolicy::take_all_goods,
                  MultiplesPolicy::take_winner_of_goods, MultiplesPolicy::take_if_only_one_good,
                  MultiplesPolicy::take_winner_if_is_good, MultiplesPolicy::take_winner_if_all_are_goods}) {
                const auto want = expected(group, policy);
                std::vector<std::pair<std::uint32_t, std::uint32_t>> got;
                resolve_multiple(size, opener_only, policy, rule, group.member,
                                 [&](std::uint32_t i, std::uint32_t j) { got.emplace_back(i, j); });
                REQUIRE(got == want);
                if (policy == MultiplesPolicy::take_all_goods) continue;

                std::uint32_t goods = 0;
                std::vector<WinningPair> pairs;
                group.for_each([&](std::uint32_t i, std::uint32_t j, bool good) {
                    goods += good ? 1 : 0;
                    if (good || petacq::gpu::among_all(policy))
                        pairs.push_back({singles[i].energy + singles[j].energy, i, j});
                });
                WinningPair winner;
                while (!pairs.empty()) {
                    std::swap(pairs[rng.index(pairs.size())], pairs.back());
                    if (pairs.back().beats(winner)) winner = pairs.back();
                    pairs.pop_back();
                }
                REQUIRE(group.taken(policy, goods, winner) == !want.empty());
                if (!want.empty()) REQUIRE(want.front() == std::pair(winner.i, winner.j));
            }
        }
    }
}

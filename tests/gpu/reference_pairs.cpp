// Delayeds, and the sums over good pairs.
#include <algorithm>

#include "gpu/randoms/pair_cells.hpp"
#include "tests/gpu/reference_segment.hpp"

namespace petacq::test {

using gpu::Kind;
using gpu::Single;
using gpu::WindowMode;

void delayeds_of_openers(const Segment& segment, Decided& out) {
    const std::uint64_t delay = segment.rules.delay.value();
    const gpu::RecordVector<Single>& s = segment.s;
    std::size_t start = 0;  // earlier singles are in no later window; saves time only
    for (std::size_t i = 0; i < s.size(); ++i) {
        // Differences, not sums: time + delay may not fit in 64 bits.
        start = std::max(start, i + 1);
        while (start < s.size() && s[start].time - s[i].time < delay)
            ++start;
        std::vector<Pair> candidates;
        for (std::size_t k = start; k < s.size() && s[k].time - s[i].time - delay <= segment.rules.window;
             ++k) {
            candidates.emplace_back(i, k);
        }
        std::vector<Pair> pairs;
        if (candidates.empty()) continue;
        if (candidates.size() + 1 > segment.rules.max_multiplicity) {
            out.counts.delayed_oversize += 1;
            continue;
        }
        if (candidates.size() == 1) {
            if (segment.good(candidates[0])) pairs = candidates;
        } else {
            pairs = segment.apply_policy(candidates);
            if (pairs.empty()) out.counts.delayed_dropped += 1;
        }
        for (const Pair& p : pairs)
            out.pairs.push_back({s[i].time, segment.record(p, Kind::delayed, delay)});
        out.counts.delayeds += pairs.size();
    }
}

namespace {

// Singles [begin, end) share the window of the first.
struct Group {
    std::size_t begin;
    std::size_t end;
};

// The prompt groups in order. In window mode "every" each single opens one.
std::vector<Group> prompt_groups(const Segment& segment) {
    const gpu::RecordVector<Single>& s = segment.s;
    std::vector<Group> groups;
    std::size_t begin = 0;
    while (begin < s.size()) {
        std::size_t end = begin;
        while (end < s.size() && s[end].time - s[begin].time <= segment.rules.window)
            ++end;
        groups.push_back({begin, end});
        begin = segment.rules.mode == WindowMode::every ? begin + 1 : end;
    }
    return groups;
}

// Times that may not fit in 64 bits.
using Time = __int128;

// The order (time, crystal, energy).
bool before_at(const Single& a, Time b_time, const Single& b) {
    if (a.time != b_time) return a.time < b_time;
    if (a.crystal != b.crystal) return a.crystal < b.crystal;
    return a.energy < b.energy;
}

}  // namespace

void delayeds_of_groups(const Segment& segment, Decided& out) {
    const gpu::RecordVector<Single>& s = segment.s;
    const gpu::CoincidenceRules& rules = segment.rules;
    const std::uint64_t delay = rules.delay.value();
    const bool every = rules.mode == WindowMode::every;
    const std::vector<Group> groups = prompt_groups(segment);
    for (const Group& group : groups) {
        const Single& opener = s[group.begin];
        const Time shifted = Time{opener.time} + delay;
        // p: how many singles are before the shifted opener.
        const auto p = static_cast<std::size_t>(
            std::partition_point(s.begin(), s.end(),
                                 [&](const Single& x) { return before_at(x, shifted, opener); }) -
            s.begin());
        if (!every) {
            // The group that holds single p - 1.
            auto there = std::upper_bound(groups.begin(), groups.end(), p - 1,
                                          [](std::size_t k, const Group& g) { return k < g.begin; }) -
                         1;
            if (shifted - s[there->begin].time <= rules.window) {
                out.counts.groups_blocked += 1;
                continue;
            }
        }
        std::size_t q = p;
        while (q < s.size() && s[q].time - shifted <= rules.window)
            ++q;
        if (q == p) continue;
        if (group.end - group.begin + q - p > rules.max_multiplicity) {
            out.counts.delayed_oversize += 1;
            continue;
        }

        struct Member {
            Single single;
            bool of_group;
        };
        std::vector<Member> members;
        for (std::size_t k = group.begin; k < group.end; ++k)
            members.push_back({s[k], true});
        for (std::size_t k = p; k < q; ++k)
            members.push_back({{s[k].time - delay, s[k].crystal, s[k].energy}, false});
        std::stable_sort(members.begin(), members.end(),
                         [](const Member& a, const Member& b) { return single_before(a.single, b.single); });
        gpu::RecordVector<Single> singles;
        for (const Member& m : members)
            singles.push_back(m.single);
        const Segment merged{singles, segment.geometry, rules};

        std::vector<Pair> candidates;
        for (std::size_t i = 0; i < singles.size(); ++i) {
            for (std::size_t j = i + 1; j < singles.size(); ++j) {
                if (rules.mode == WindowMode::single || i == 0) candidates.emplace_back(i, j);
            }
        }
        std::vector<Pair> pairs;
        if (singles.size() == 2) {
            if (merged.good(candidates[0])) pairs = candidates;
        } else {
            pairs = merged.apply_policy(candidates);
        }
        std::size_t taken = 0;
        for (const Pair& pair : pairs) {
            if (members[pair.first].of_group == members[pair.second].of_group) continue;
            taken += 1;
            out.pairs.push_back({opener.time, merged.record(pair, Kind::delayed, 0)});
        }
        out.counts.delayeds += taken;
        if (singles.size() > 2 && taken == 0) out.counts.delayed_dropped += 1;
    }
}

gpu::PairProducts reference_pair_products(const config::Geometry& g, const gpu::CoincidenceRules& rules,
                                          const gpu::CrystalValues& values,
                                          const std::vector<gpu::PairChances>& chances) {
    const gpu::PairCells cells = gpu::PairCells::of(g, rules);
    const gpu::PairRule& rule = cells.rule;
    const auto module_of = [&](std::uint32_t crystal) -> std::size_t {
        if (g.pairs) return cells.side_of(cells.of_crystal(crystal));
        return crystal % g.crystals_in_ring() / g.crystals_per_module_y();
    };
    const std::size_t modules = g.pairs ? cells.sides : g.modules_in_ring();
    std::vector<long double> pairs(modules * modules);
    long double total = 0;
    gpu::PairProducts out;
    out.modules = static_cast<std::uint32_t>(modules);
    for (std::uint32_t i = 0; i < g.crystal_count(); ++i) {
        long double sum = 0;
        for (std::uint32_t j = 0; j < g.crystal_count(); ++j) {
            if (!rule.good(i, j)) continue;
            long double one = 0;
            for (std::size_t x = 0; x < gpu::single_kinds; ++x) {
                for (std::size_t y = 0; y < gpu::single_kinds; ++y)
                    one += static_cast<long double>(
                               chances[cells.of_crystal(i) * cells.count() + cells.of_crystal(j)].of[x][y]) *
                           values.of[x][i] * values.of[y][j];
            }
            sum += one;
            if (i < j) {
                total += one;
                pairs[module_of(i) * modules + module_of(j)] += one;
                if (module_of(i) != module_of(j)) pairs[module_of(j) * modules + module_of(i)] += one;
            }
        }
        out.per_crystal.push_back(static_cast<double>(sum));
    }
    for (const long double p : pairs)
        out.module_pairs.push_back(static_cast<double>(p));
    out.total = static_cast<double>(total);
    return out;
}

}  // namespace petacq::test

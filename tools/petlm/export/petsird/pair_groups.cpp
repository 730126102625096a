#include "tools/petlm/export/petsird/pair_groups.hpp"

#include <algorithm>
#include <utility>

#include "tools/petlm/export/geometry/pair_angle.hpp"

namespace petacq::petsird {
namespace {

/// The place of a module of a ring, by its first crystal.
struct RingPlace {
    std::uint32_t around;
    std::uint32_t row;
};
RingPlace place_of(const config::Geometry& g, std::uint32_t crystal) {
    return {crystal % g.crystals_in_ring() / g.crystals_per_module_y(),
            crystal / g.crystals_in_ring() / (g.blocks.z * g.crystals.z)};
}

bool modules_pair(const EfficiencySource& source, std::uint32_t crystal_a, std::uint32_t crystal_b) {
    const config::Geometry& g = source.scanner.geometry;
    if (g.is_ring()) {
        const std::uint32_t modules = g.modules_in_ring();
        const std::uint32_t up =
            (place_of(g, crystal_b).around + modules - place_of(g, crystal_a).around) % modules;
        return std::min(up, modules - up) >= source.min_module_difference;
    }
    const auto group = [&](std::uint32_t crystal) { return g.pairs->crystals[crystal].group; };
    return petlm::groups_pair(*g.pairs, group(crystal_a), group(crystal_b), source.min_module_difference);
}

/// The same number for pairs of modules whose crystals have the same weights and factors.
std::uint64_t number_of(const EfficiencySource& source, std::uint32_t crystal_a, std::uint32_t crystal_b,
                        std::size_t pair) {
    const config::Geometry& g = source.scanner.geometry;
    if (const auto& classes = source.normalised->file().classes) {
        const std::size_t of =
            std::size_t{classes->module[crystal_a]} * classes->columns.size() + classes->module[crystal_b];
        return std::uint64_t{classes->pair_class[of]} * 32 + classes->pair_turn[of];
    }
    if (!g.is_ring()) return pair;
    // In a ring the number of modules from one to the other, and their rows.
    const RingPlace a = place_of(g, crystal_a);
    const RingPlace b = place_of(g, crystal_b);
    const std::uint32_t modules = g.modules_in_ring();
    const std::uint32_t up = (b.around + modules - a.around) % modules;
    // The factors of opposite modules depend on which of them has the lower number.
    const std::uint32_t turn = 2 * up == modules && a.around > b.around ? modules : up;
    return (std::uint64_t{turn} * g.modules.z + a.row) * g.modules.z + b.row;
}

template <class Number>
PairGroups groups_of(const EfficiencySource& source, const ModuleType& a, const ModuleType& b,
                     const Number& number) {
    PairGroups out;
    out.columns = b.modules();
    out.group.assign(a.modules() * b.modules(), -1);
    std::vector<std::pair<std::uint64_t, std::size_t>> pairs;  // number and pair
    for (std::size_t i = 0; i < a.modules(); ++i) {
        for (std::size_t j = 0; j < b.modules(); ++j) {
            const std::size_t pair = i * b.modules() + j;
            const std::uint32_t crystal_a = a.crystal(i, 0);
            const std::uint32_t crystal_b = b.crystal(j, 0);
            if (modules_pair(source, crystal_a, crystal_b))
                pairs.emplace_back(number(crystal_a, crystal_b, pair), pair);
        }
    }
    std::sort(pairs.begin(), pairs.end());
    for (std::size_t k = 0; k < pairs.size(); ++k) {
        if (k == 0 || pairs[k].first != pairs[k - 1].first) out.first_pair.push_back(pairs[k].second);
        out.group[pairs[k].second] = static_cast<std::int32_t>(out.first_pair.size()) - 1;
    }
    return out;
}

}  // namespace

PairGroups good_pairs(const EfficiencySource& source, const ModuleType& a, const ModuleType& b) {
    return groups_of(source, a, b,
                     [](std::uint32_t, std::uint32_t, std::size_t) { return std::uint64_t{0}; });
}

PairGroups alike_pairs(const EfficiencySource& source, const ModuleType& a, const ModuleType& b) {
    return groups_of(source, a, b, [&](std::uint32_t crystal_a, std::uint32_t crystal_b, std::size_t pair) {
        return number_of(source, crystal_a, crystal_b, pair);
    });
}

}  // namespace petacq::petsird

#include "gpu/pair_cells.hpp"
#include "tests/gpu/reference.hpp"

namespace petacq::test {

gpu::PairProducts reference_pair_products(const config::Geometry& g, const gpu::CoincidenceRules& rules,
                                          const gpu::CrystalValues& values,
                                          const std::vector<gpu::PairChances>& chances) {
    const gpu::PairCells cells = gpu::PairCells::of(g, rules);
    const gpu::PairRule& rule = cells.rule;
    const auto module_of = [&](std::size_t crystal) {
        return crystal % g.crystals_in_ring() / g.crystals_per_module_y();
    };
    const std::size_t modules = g.modules_in_ring();
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

#include "gpu/interval_sums.hpp"

#include <algorithm>
#include <cassert>

namespace petacq::gpu {

#define PETACQ_ADD(section, name, ...) name += o.name;
SingleCounts& SingleCounts::operator+=(const SingleCounts& o) {
    PETACQ_SINGLE_COUNTERS(PETACQ_ADD)
    return *this;
}
GammaCounts& GammaCounts::operator+=(const GammaCounts& o) {
    PETACQ_GAMMA_COUNTERS(PETACQ_ADD)
    return *this;
}
#undef PETACQ_ADD

IntervalSums IntervalSums::none(const config::Geometry& geometry) {
    const std::vector<std::uint32_t> zeros(geometry.crystal_count());
    const std::size_t pairs = Sectors::of(geometry).pairs();
    return {zeros,
            zeros,
            zeros,
            zeros,
            std::vector<PromptEnds>(geometry.bdm_count),
            std::vector<std::uint32_t>(pairs),
            std::vector<std::uint32_t>(pairs),
            std::vector<std::uint32_t>(energy_samples),
            {},
            {}};
}

void IntervalSums::clear() {
    for (auto* const crystals : {&unpaired, &grouped, &prompts, &delayeds})
        std::fill(crystals->begin(), crystals->end(), 0);
    std::fill(modules.begin(), modules.end(), PromptEnds{});
    std::fill(module_pairs.begin(), module_pairs.end(), 0U);
    std::fill(refused_pairs.begin(), refused_pairs.end(), 0U);
    std::fill(energies.begin(), energies.end(), 0U);
    counts = {};
    gammas = {};
}

IntervalSums& IntervalSums::operator+=(const IntervalSums& more) {
    const auto add = [](auto& to, const auto& from) {
        assert(to.size() == from.size());
        for (std::size_t i = 0; i < to.size(); ++i)
            to[i] += from[i];
    };
    add(unpaired, more.unpaired);
    add(grouped, more.grouped);
    add(prompts, more.prompts);
    add(delayeds, more.delayeds);
    add(modules, more.modules);
    add(module_pairs, more.module_pairs);
    add(refused_pairs, more.refused_pairs);
    add(energies, more.energies);
    counts += more.counts;
    gammas += more.gammas;
    return *this;
}

std::vector<std::uint16_t> modules_of_crystals(const config::Geometry& geometry) {
    std::vector<std::uint16_t> modules(geometry.crystal_count());
    for (std::uint32_t bdm = 0; bdm < geometry.bdm_count; ++bdm) {
        for (std::uint32_t du = 0; du < geometry.du_count; ++du) {
            const std::uint32_t crystals = geometry.crystals_of_unit(bdm * geometry.du_count + du);
            for (std::uint32_t local = 0; local < crystals; ++local)
                modules[geometry.crystal(bdm, du, local)] = static_cast<std::uint16_t>(bdm);
        }
    }
    return modules;
}

}  // namespace petacq::gpu

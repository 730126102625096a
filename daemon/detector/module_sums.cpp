#include "daemon/detector/module_sums.hpp"

#include <cassert>

namespace petacq::daemon {

ModuleSums& ModuleSums::operator+=(const ModuleSums& o) {
    ends += o.ends;
    trues += o.trues;
    dt += o.dt;
    dt_squared += o.dt_squared;
    peak += o.peak;
    peak_energy += o.peak_energy;
    singles += o.singles;
    return *this;
}

std::optional<double> ModuleSums::mean_dt() const {
    return has_trues() ? std::optional(dt / trues) : std::nullopt;
}

std::optional<double> ModuleSums::photopeak_keV() const {
    return peak > 0 ? std::optional(peak_energy / peak) : std::nullopt;
}

std::optional<double> ModuleSums::prompts_per_single() const {
    return singles > 0 ? std::optional(trues / singles) : std::nullopt;
}

DetectorSums DetectorSums::none(const config::Geometry& geometry) {
    return {ModuleTable(geometry.bdm_count),
            std::vector<UnitSums>(std::size_t{geometry.bdm_count} * geometry.du_count)};
}

DetectorSums& DetectorSums::operator+=(const DetectorSums& more) {
    assert(modules.size() == more.modules.size() && units.size() == more.units.size());
    for (std::size_t bdm = 0; bdm < modules.size(); ++bdm)
        modules[bdm] += more.modules[bdm];
    for (std::size_t u = 0; u < units.size(); ++u) {
        units[u].trues += more.units[u].trues;
        units[u].singles += more.units[u].singles;
    }
    return *this;
}

std::vector<std::uint32_t> crystals_by_unit(const config::Geometry& geometry) {
    std::vector<std::uint32_t> crystals;
    for (std::uint32_t bdm = 0; bdm < geometry.bdm_count; ++bdm) {
        for (std::uint32_t du = 0; du < geometry.du_count; ++du) {
            const std::uint32_t count = geometry.crystals_of_unit(bdm * geometry.du_count + du);
            for (std::uint32_t local = 0; local < count; ++local)
                crystals.push_back(geometry.crystal(bdm, du, local));
        }
    }
    return crystals;
}

DetectorSums detector_sums(const Second& second, const config::Geometry& geometry,
                           const std::vector<std::uint32_t>& crystals) {
    DetectorSums sums = DetectorSums::none(geometry);
    auto crystal_of_unit = crystals.begin();
    for (std::uint32_t u = 0; u < sums.units.size(); ++u) {
        UnitSums& unit = sums.units[u];
        for (std::uint32_t left = geometry.crystals_of_unit(u); left > 0; --left, ++crystal_of_unit) {
            const std::uint32_t crystal = *crystal_of_unit;
            const double ends = second.sums.prompts[crystal];
            sums.modules[u / geometry.du_count].ends += ends;
            unit.trues += ends;
            if (!second.randoms.per_crystal.empty()) unit.trues -= second.randoms.per_crystal[crystal];
            unit.singles += second.sums.unpaired[crystal];
            unit.singles += second.sums.grouped[crystal];
        }
    }
    for (std::size_t u = 0; u < sums.units.size(); ++u) {
        sums.modules[u / geometry.du_count].trues += sums.units[u].trues;
        sums.modules[u / geometry.du_count].singles += sums.units[u].singles;
    }
    for (std::size_t bdm = 0; bdm < sums.modules.size(); ++bdm) {
        const gpu::PromptEnds& ends = second.sums.modules[bdm];
        sums.modules[bdm].dt = static_cast<double>(static_cast<std::int64_t>(ends.dt));
        sums.modules[bdm].dt_squared = static_cast<double>(ends.dt_squared);
        sums.modules[bdm].peak = static_cast<double>(ends.peak);
        sums.modules[bdm].peak_energy = static_cast<double>(ends.peak_energy) / 16;
    }
    return sums;
}

}  // namespace petacq::daemon

#include "daemon/seconds/module_sums.hpp"

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

ModuleTable& operator+=(ModuleTable& table, const ModuleTable& more) {
    assert(table.size() == more.size());
    for (std::size_t bdm = 0; bdm < table.size(); ++bdm)
        table[bdm] += more[bdm];
    return table;
}

ModuleTable modules_of(const Second& second, const std::vector<std::uint8_t>& module_of_crystal) {
    ModuleTable modules(second.sums.modules.size());
    for (std::size_t i = 0; i < module_of_crystal.size(); ++i) {
        ModuleSums& m = modules[module_of_crystal[i]];
        m.ends += second.sums.prompts[i];
        m.trues += second.sums.prompts[i];
        m.singles += second.sums.unpaired[i];
        m.singles += second.sums.grouped[i];
        if (!second.randoms.per_crystal.empty()) m.trues -= second.randoms.per_crystal[i];
    }
    for (std::size_t bdm = 0; bdm < modules.size(); ++bdm) {
        const gpu::PromptEnds& ends = second.sums.modules[bdm];
        modules[bdm].dt = static_cast<double>(static_cast<std::int64_t>(ends.dt));
        modules[bdm].dt_squared = static_cast<double>(ends.dt_squared);
        modules[bdm].peak = static_cast<double>(ends.peak);
        modules[bdm].peak_energy = static_cast<double>(ends.peak_energy) / 16;
    }
    return modules;
}

DetectorBaseline DetectorBaseline::none(const config::Geometry& geometry) {
    DetectorBaseline baseline;
    baseline.modules.resize(geometry.bdm_count);
    baseline.units.resize(std::size_t{geometry.bdm_count} * geometry.du_count);
    return baseline;
}

}  // namespace petacq::daemon

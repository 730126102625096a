#include "gpu/cpu/cpu_tables.hpp"

#include <bit>
#include <map>

namespace petacq::gpu {

HostTables::HostTables(const PipelineOptions& options, const config::Calibration& calibration)
    : frames(options, calibration) {
    const config::Geometry& g = options.geometry;
    const std::uint32_t bins = frames.view().bins;
    constexpr std::size_t values = 256;  // of the position table
    std::map<std::vector<std::uint32_t>, std::uint32_t> patterns;
    rows.resize(std::size_t{g.crystal_count()} * (1 + bins));
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        std::vector<std::uint32_t> pattern(values);
        const std::uint32_t count = g.crystals_of_unit(unit);
        const auto number = [&](std::uint32_t local) {
            return g.crystal(unit / g.du_count, unit % g.du_count, local);
        };
        const std::uint32_t first = count > 0 ? number(0) : 0;
        for (std::uint32_t local = 0; local < count; ++local)
            pattern[local] = number(local) - first;
        const auto [known, is_new] =
            patterns.emplace(pattern, static_cast<std::uint32_t>(crystal_in_unit.size()));
        if (is_new) crystal_in_unit.insert(crystal_in_unit.end(), pattern.begin(), pattern.end());
        units.push_back({first, known->second});
        for (std::uint32_t local = 0; local < count; ++local) {
            const std::uint32_t crystal = number(local);
            const std::size_t slot = std::size_t{unit} * g.crystals_per_du() + local;
            std::uint32_t* const row = &rows[std::size_t{crystal} * (1 + bins)];
            row[0] = std::bit_cast<std::uint32_t>(time_offset(calibration, crystal));
            for (std::uint32_t bin = 0; bin < bins; ++bin)
                row[1 + bin] = std::bit_cast<std::uint32_t>(energy_factor(calibration, slot, bin));
        }
    }
}

std::uint64_t HostTables::bytes() const {
    return frames.bytes() + units.size() * sizeof units[0] +
           (crystal_in_unit.size() + rows.size()) * sizeof rows[0];
}

}  // namespace petacq::gpu

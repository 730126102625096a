#include "gpu/cpu/cpu_tables.hpp"

#include <bit>

namespace petacq::gpu {

HostTables::HostTables(const PipelineOptions& options, const config::Calibration& calibration)
    : frames(options, calibration) {
    const config::Geometry& g = options.geometry;
    const std::uint32_t bins = frames.view().bins;
    const std::uint32_t units = g.bdm_count * g.du_count;
    crystal_in_unit.resize(config::has_wide_positions(g) ? std::size_t{1} << 16 : std::size_t{1} << 8);
    for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local)
        crystal_in_unit[local] = g.crystal(0, 0, local);
    rows.resize(std::size_t{g.crystal_count()} * (1 + bins));
    for (std::uint32_t unit = 0; unit < units; ++unit) {
        first_crystal.push_back(g.crystal(unit / g.du_count, unit % g.du_count, 0));
        for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local) {
            const std::uint32_t crystal = first_crystal[unit] + crystal_in_unit[local];
            const std::size_t slot = std::size_t{unit} * g.crystals_per_du() + local;
            std::uint32_t* const row = &rows[std::size_t{crystal} * (1 + bins)];
            row[0] = std::bit_cast<std::uint32_t>(time_offset(calibration, crystal));
            for (std::uint32_t bin = 0; bin < bins; ++bin)
                row[1 + bin] = std::bit_cast<std::uint32_t>(energy_factor(calibration, slot, bin));
        }
    }
}

std::uint64_t HostTables::bytes() const {
    return frames.bytes() + (first_crystal.size() + crystal_in_unit.size() + rows.size()) * sizeof rows[0];
}

}  // namespace petacq::gpu

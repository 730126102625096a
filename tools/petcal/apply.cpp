#include "tools/petcal/apply.hpp"

#include <algorithm>
#include <cstddef>

#include "config/calibration.hpp"
#include "config/error.hpp"
#include "tools/petcal/results.hpp"

namespace petacq::petcal {

namespace {

void apply_crystals(const config::Geometry& g, const ApplyOptions& o, config::Calibration& c) {
    const CrystalsResult r = load_crystals(o.crystals, g);
    const std::size_t positions = std::size_t{g.position_size} * g.position_size;
    for (std::size_t unit = 0; unit < r.derived.size(); ++unit) {
        if (r.derived[unit] == 0) continue;
        const auto first = static_cast<std::ptrdiff_t>(unit * positions);
        std::copy_n(r.position_table.begin() + first, positions, c.position_table.begin() + first);
    }
    c.origin["crystals_sha256"] = config::sha256_of_file(o.crystals);
}

void apply_energy(const config::Geometry& g, const ApplyOptions& o, config::Calibration& c) {
    EnergyResult r = load_energy(o.energy, g);
    const std::string map = map_checksum(c.position_table);
    if (r.map_sha256 != map) {
        throw config::Error(o.energy.string() +
                            ": expected energies of the crystal map of this calibration (map_sha256 " + map +
                            "), found those of another one (" + r.map_sha256 +
                            "): apply the crystals first, take spectra with the result, and derive energy");
    }
    c.energy_factor = std::move(r.energy_factor);
    c.bins = r.bins;
    c.origin["energy_sha256"] = config::sha256_of_file(o.energy);
}

}  // namespace

void apply(const config::Scanner& scanner, const ApplyOptions& o) {
    const config::Geometry& g = scanner.geometry;
    if (o.crystals.empty() && o.energy.empty())
        throw config::Error("nothing to apply: expected --crystals, --energy, or both");
    config::Calibration c = config::load_calibration(o.calibration, g);
    c.origin = made_by("petcal apply");
    c.origin["calibration_sha256"] = c.sha256;
    if (!o.crystals.empty()) apply_crystals(g, o, c);
    if (!o.energy.empty()) apply_energy(g, o, c);
    config::save_calibration(o.output, g, c);
}

}  // namespace petacq::petcal

#include "tools/petcal/apply.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <vector>

#include "config/base/error.hpp"
#include "config/calibration.hpp"
#include "config/scanner/existing_modules.hpp"
#include "tools/petcal/base/text.hpp"
#include "tools/petcal/results/results.hpp"

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
    const std::string map = map_checksum(g, c.position_table);
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

/// "BDM:TICKS"; the BDM is the number that frames carry and that health names.
void add_to_bdm(const config::Geometry& g, const std::string& text, config::Calibration& c) {
    const std::size_t colon = text.find(':');
    std::uint32_t bdm = 0;
    std::int64_t ticks = 0;
    const char* const end = text.data() + text.size();
    const auto read = [](const char* from, const char* to, auto& number) {
        const auto [stop, error] = std::from_chars(from != to && *from == '+' ? from + 1 : from, to, number);
        return error == std::errc{} && stop == to;
    };
    if (colon == std::string::npos || !read(text.data(), text.data() + colon, bdm) ||
        !read(text.data() + colon + 1, end, ticks) || bdm >= g.bdm_count || !g.module_exists(bdm)) {
        throw config::Error("--bdm-ticks: expected BDM:TICKS, such as 7:-640, with one of the BDMs " +
                            ranges_text(config::existing_modules(g)) + ", found '" + text + "'");
    }
    const bool far = ticks > INT32_MAX || ticks < INT32_MIN;
    if (c.time_offset.empty()) c.time_offset.resize(g.crystal_count());
    for (std::uint32_t du = 0; du < g.du_count; ++du) {
        for (std::uint32_t local = 0; local < g.crystals_of_unit(bdm * g.du_count + du); ++local) {
            std::int32_t& offset = c.time_offset[g.crystal(bdm, du, local)];
            const std::int64_t sum = far ? ticks : offset + ticks;
            if (sum > INT32_MAX || sum < INT32_MIN) {
                throw config::Error("--bdm-ticks " + text + ": expected time offsets within " +
                                    std::to_string(INT32_MIN) + " to " + std::to_string(INT32_MAX) +
                                    " ticks afterwards");
            }
            offset = static_cast<std::int32_t>(sum);
        }
    }
}

}  // namespace

void apply(const config::Scanner& scanner, const ApplyOptions& o) {
    const config::Geometry& g = scanner.geometry;
    if (o.crystals.empty() && o.energy.empty() && o.bdm_ticks.empty())
        throw config::Error("nothing to apply: expected --crystals, --energy or --bdm-ticks");
    config::Calibration c = config::load_calibration(o.calibration, g);
    c.origin = made_by("petcal apply");
    c.origin["calibration_sha256"] = c.sha256;
    if (!o.crystals.empty()) apply_crystals(g, o, c);
    if (!o.energy.empty()) apply_energy(g, o, c);
    for (const std::string& one : o.bdm_ticks)
        add_to_bdm(g, one, c);
    config::save_calibration(o.output, g, c);
}

}  // namespace petacq::petcal

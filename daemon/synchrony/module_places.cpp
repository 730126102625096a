#include "daemon/synchrony/module_places.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "config/scanner/arrangement.hpp"
#include "config/shape/extent.hpp"

namespace petacq::daemon {

namespace {

constexpr double same_mm = 0.1;

std::int64_t rounded(double mm) {
    return std::llround(mm / same_mm);
}

/// Numbers keys in the order in which they come.
template <class Key>
std::uint32_t number_of(std::map<Key, std::uint32_t>& known, const Key& key) {
    return known.emplace(key, static_cast<std::uint32_t>(known.size())).first->second;
}

}  // namespace

std::vector<ModulePlace> module_places(const config::Scanner& scanner) {
    const config::Geometry& g = scanner.geometry;
    const auto arrangement = config::arrangement_of(scanner);
    const double pitch = config::extent_of(scanner).axial_pitch_mm;
    const gpu::Sectors sectors = compared_modules(g);
    struct CrystalExtent {
        double count = 0;
        double low = std::numeric_limits<double>::infinity();
        double high = -std::numeric_limits<double>::infinity();
    };
    std::vector<CrystalExtent> crystals(sectors.count());
    std::vector<ModulePlace> places(sectors.count());
    std::map<std::tuple<std::int64_t, std::int64_t>, std::uint32_t> rows;
    std::map<std::tuple<std::int64_t, std::int64_t>, std::uint32_t> lines;
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        const std::uint32_t bdm = unit / g.du_count;
        CrystalExtent& all = crystals[sectors.of_module(bdm)];
        for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local) {
            const std::uint32_t crystal = g.crystal(bdm, unit % g.du_count, local);
            const config::Vector3 end =
                config::point_at_depth(arrangement->place(crystal), arrangement->layer_of(crystal).length_mm);
            for (std::size_t axis = 0; axis < 3; ++axis)
                places[sectors.of_module(bdm)].middle_mm.at(axis) += end.at(axis);
            all.low = std::min(all.low, end[2]);
            all.high = std::max(all.high, end[2]);
            ++all.count;
        }
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
        ModulePlace& place = places[i];
        if (crystals[i].count == 0) continue;
        place.exists = true;
        for (double& mm : place.middle_mm)
            mm /= crystals[i].count;
        place.length_mm = crystals[i].high - crystals[i].low + pitch;
        const auto& [x, y, z] = place.middle_mm;
        place.row = number_of(rows, std::tuple(rounded(z), rounded(std::hypot(x, y))));
        place.line = number_of(lines, std::tuple(rounded(x), rounded(y)));
    }
    return places;
}

}  // namespace petacq::daemon

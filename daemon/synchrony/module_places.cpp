#include "daemon/synchrony/module_places.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "config/arrangement.hpp"
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
    std::vector<ModulePlace> places(g.bdm_count);
    std::map<std::tuple<std::int64_t, std::int64_t>, std::uint32_t> rows;
    std::map<std::tuple<std::int64_t, std::int64_t>, std::uint32_t> lines;
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm) {
        ModulePlace& place = places[bdm];
        double count = 0;
        double low = std::numeric_limits<double>::infinity();
        double high = -low;
        for (std::uint32_t du = 0; du < g.du_count; ++du) {
            for (std::uint32_t local = 0; local < g.crystals_of_unit(bdm * g.du_count + du); ++local) {
                const std::uint32_t crystal = g.crystal(bdm, du, local);
                const config::Vector3 end = config::point_at_depth(arrangement->place(crystal),
                                                                   arrangement->layer_of(crystal).length_mm);
                for (std::size_t axis = 0; axis < 3; ++axis)
                    place.middle_mm.at(axis) += end.at(axis);
                low = std::min(low, end[2]);
                high = std::max(high, end[2]);
                ++count;
            }
        }
        if (count == 0) continue;
        place.exists = true;
        for (double& mm : place.middle_mm)
            mm /= count;
        place.length_mm = high - low + pitch;
        const auto& [x, y, z] = place.middle_mm;
        place.row = number_of(rows, std::tuple(rounded(z), rounded(std::hypot(x, y))));
        place.line = number_of(lines, std::tuple(rounded(x), rounded(y)));
    }
    return places;
}

}  // namespace petacq::daemon

#include "tools/petcal/base/dead_units.hpp"

#include "tools/petcal/base/units.hpp"

namespace petacq::petcal {

DeadCrystals find_dead(const config::Geometry& g, const std::vector<float>& efficiency) {
    DeadCrystals out;
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        std::vector<std::string> here;
        for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local) {
            const std::uint32_t crystal = g.crystal(unit / g.du_count, unit % g.du_count, local);
            if (efficiency[crystal] > 0) continue;
            here.push_back(unit_name(g, unit) + ", crystal " + std::to_string(local) + " (number " +
                           std::to_string(crystal) + ")");
        }
        if (here.empty()) continue;
        if (here.size() == g.crystals_of_unit(unit)) {
            out.units.push_back(unit);
        } else {
            out.crystals.insert(out.crystals.end(), here.begin(), here.end());
        }
    }
    return out;
}

}  // namespace petacq::petcal

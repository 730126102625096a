#include "tools/petcal/results/derived_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "config/median.hpp"
#include "tools/petcal/base/text.hpp"

namespace petacq::petcal {

std::string groups_text(const config::Geometry& g, const estimate::TimeOffsets& offsets) {
    constexpr std::size_t most = 10;
    std::vector<std::set<std::uint32_t>> modules(offsets.groups);
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        const std::uint32_t bdm = unit / g.du_count;
        for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local) {
            const std::uint32_t crystal = g.crystal(bdm, unit % g.du_count, local);
            if (std::isfinite(offsets.error_ticks[crystal])) modules[offsets.group_of[crystal]].insert(bdm);
        }
    }
    std::string text;
    for (std::size_t group = 0; group < std::min(most, modules.size()); ++group) {
        const std::vector<std::uint32_t> numbers(modules[group].begin(), modules[group].end());
        text += (text.empty() ? "" : "; ") + std::string(numbers.size() == 1 ? "BDM " : "BDMs ") +
                ranges_text(numbers);
    }
    if (modules.size() > most) text += "; and " + std::to_string(modules.size() - most) + " more";
    return text;
}

std::string advice_on_prompts(const DerivedTimes& times) {
    // An offset from n prompts is wrong by sigma / sqrt(n). Those of both crystals of a pair move its peak by
    // sqrt(2 / n) sigma: a tenth at 200.
    constexpr double enough = 200;
    const double found = config::median(times.offsets.pairs);
    if (found >= enough) return "";
    const double needed = static_cast<double>(times.prompts) * enough / std::max(found, 1.0);
    return fmt::format(
        "few prompts: {:.0f} for each crystal (median); {:.0f}, about {} in all, make offsets "
        "that move the peak of a pair by less than a tenth of its sigma",
        found, enough, std::lround(needed));
}

}  // namespace petacq::petcal

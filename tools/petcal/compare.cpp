#include "tools/petcal/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "config/base/decimals.hpp"
#include "config/energy_bins.hpp"
#include "tools/petcal/base/units.hpp"

namespace petacq::petcal {

namespace {

using nlohmann::json;

/// The number of positions of a unit that belong to another crystal, from `first` on.
std::size_t differing_positions(const config::Geometry& g, const config::Calibration& a,
                                const config::Calibration& b, std::size_t first) {
    const std::size_t positions = std::size_t{g.position_size} * g.position_size;
    // This and all values beyond it.
    const std::uint32_t outside = g.crystals_of_unit(static_cast<std::uint32_t>(first / positions));
    std::size_t count = 0;
    for (std::size_t i = first; i < first + positions; ++i) {
        const std::uint32_t of_a = std::min<std::uint32_t>(a.position_table[i], outside);
        const std::uint32_t of_b = std::min<std::uint32_t>(b.position_table[i], outside);
        if (of_a != of_b) ++count;
    }
    return count;
}

json compare_maps(const config::Geometry& g, const config::Calibration& a, const config::Calibration& b) {
    const std::size_t positions = std::size_t{g.position_size} * g.position_size;
    json by_unit = json::array();
    std::size_t differing = 0;
    std::size_t compared = 0;
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm) {
        for (std::uint32_t du = 0; du < g.du_count; ++du) {
            if (g.crystals_of_unit(bdm * g.du_count + du) == 0) continue;
            const std::size_t first = (std::size_t{bdm} * g.du_count + du) * positions;
            const std::size_t here = differing_positions(g, a, b, first);
            const double share = static_cast<double>(here) / static_cast<double>(positions);
            by_unit.push_back({{"bdm", bdm}, {"du", du}, {"differing_fraction", share}});
            differing += here;
            compared += positions;
        }
    }
    return {{"differing_fraction", static_cast<double>(differing) / static_cast<double>(compared)},
            {"units", by_unit}};
}

float factor_at(const config::Calibration& c, std::size_t crystal, std::uint32_t adc) {
    return c.energy_factor[crystal * c.bins + std::min(adc / config::adc_per_bin, c.bins - 1)];
}

/// The smallest ADC value to which a calibration gives 511 keV.
std::optional<std::uint32_t> adc_of_peak(const config::Calibration& c, std::size_t crystal) {
    constexpr double keV = 511;  // NOLINT(readability-identifier-naming)
    for (std::uint32_t bin = 0; bin < config::max_bins; ++bin) {
        const double factor = factor_at(c, crystal, bin * config::adc_per_bin);
        const std::uint32_t last = std::min<std::uint32_t>(65535, bin * config::adc_per_bin + 9);
        if (factor * last < keV) continue;
        const auto needed = static_cast<std::uint32_t>(std::ceil(keV / factor));
        return std::max(needed, bin * config::adc_per_bin);
    }
    return std::nullopt;
}

/// Mean, rms and largest of the absolute values.
struct Differences {
    double sum = 0;
    double squares = 0;
    double most = 0;
    std::size_t count = 0;
    void add(double d) {
        sum += d;
        squares += d * d;
        most = std::max(most, std::abs(d));
        ++count;
    }
    [[nodiscard]] json figures(double scale, const std::string& unit) const {
        const double n = static_cast<double>(std::max<std::size_t>(1, count));
        return {{"mean_" + unit, scale * sum / n},
                {"rms_" + unit, scale * std::sqrt(squares / n)},
                {"max_" + unit, scale * most}};
    }
};

json compare_energies(const config::Geometry& g, const config::Calibration& a, const config::Calibration& b) {
    Differences differences;
    std::size_t incomparable = 0;
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local) {
            const std::size_t crystal = std::size_t{unit} * g.crystals_per_du() + local;
            const auto adc = adc_of_peak(a, crystal);
            if (!adc) {
                ++incomparable;
                continue;
            }
            differences.add(factor_at(b, crystal, *adc) / double{factor_at(a, crystal, *adc)} - 1);
        }
    }
    json figures = differences.figures(100, "percent");
    figures["incomparable"] = incomparable;
    return figures;
}

json compare_times(const config::Scanner& scanner, const config::Calibration& a,
                   const config::Calibration& b) {
    Differences differences;
    const auto offset = [](const config::Calibration& c, std::size_t crystal) -> double {
        return c.time_offset.empty() ? 0 : c.time_offset[crystal];
    };
    for (std::size_t crystal = 0; crystal < scanner.geometry.crystal_count(); ++crystal)
        differences.add(offset(b, crystal) - offset(a, crystal));
    json figures = differences.figures(1, "ticks");
    figures.update(differences.figures(scanner.tick_ps, "ps"));
    return figures;
}

}  // namespace

json compare(const config::Scanner& scanner, const config::Calibration& a, const config::Calibration& b) {
    return {{"a_sha256", a.sha256},
            {"b_sha256", b.sha256},
            {"position_table", compare_maps(scanner.geometry, a, b)},
            {"energy_factor", compare_energies(scanner.geometry, a, b)},
            {"time_offset", compare_times(scanner, a, b)}};
}

std::string compare_text(const json& f) {
    const auto value = [](const json& part, const char* key) { return part.at(key).get<double>(); };
    const json& map = f.at("position_table");
    std::string text = fmt::format("position_table  other crystal: {:.3f} % of positions\n",
                                   100 * value(map, "differing_fraction"));
    std::vector<std::pair<double, std::string>> units;
    for (const json& unit : map.at("units")) {
        const double share = value(unit, "differing_fraction");
        if (share == 0) continue;
        units.emplace_back(share, fmt::format("                {}: {:.3f} %\n",
                                              unit_name(unit.at("bdm"), unit.at("du")), 100 * share));
    }
    const auto larger = [](const auto& one, const auto& other) { return one.first > other.first; };
    std::stable_sort(units.begin(), units.end(), larger);
    constexpr std::size_t most = 10;
    for (std::size_t i = 0; i < units.size() && i < most; ++i)
        text += units[i].second;
    if (units.size() > most) text += fmt::format("                and {} more\n", units.size() - most);
    const json& e = f.at("energy_factor");
    text +=
        fmt::format("energy_factor   at 511 keV, B to A: mean {:+.3f} %, rms {:.3f} %, largest {:.3f} %\n",
                    config::without_minus_zero(value(e, "mean_percent"), 3), value(e, "rms_percent"),
                    value(e, "max_percent"));
    if (e.at("incomparable") != 0)
        text += fmt::format("                crystals that never reach 511 keV in A: {}\n",
                            e.at("incomparable").get<std::size_t>());
    const json& t = f.at("time_offset");
    text += fmt::format(
        "time_offset     B minus A: mean {:+.2f} ticks, rms {:.2f} ticks ({:.1f} ps), largest {:.0f} ticks\n",
        config::without_minus_zero(value(t, "mean_ticks"), 2), value(t, "rms_ticks"), value(t, "rms_ps"),
        value(t, "max_ticks"));
    return text;
}

}  // namespace petacq::petcal

#include "tools/petcal/inspect.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "config/base/printable.hpp"
#include "config/median.hpp"

namespace petacq::petcal {

namespace {

using nlohmann::json;

// Tables have room for the largest unit in every (BDM, DU); what no crystal has does not count.

struct PositionFigures {
    std::uint64_t outside = 0;  ///< positions of units that belong to no crystal
    std::uint64_t positions = 0;
    std::uint64_t crystals_without = 0;
};

PositionFigures position_figures(const config::Geometry& g, const config::Calibration& c) {
    const std::size_t positions = std::size_t{g.position_size} * g.position_size;
    PositionFigures figures;
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        const std::uint32_t crystals = g.crystals_of_unit(unit);
        if (crystals == 0) continue;
        std::vector<bool> named(crystals);
        for (std::size_t i = 0; i < positions; ++i) {
            const std::uint32_t origin = c.position_table[unit * positions + i];
            if (origin < crystals) {
                named[origin] = true;
            } else {
                ++figures.outside;
            }
        }
        figures.positions += positions;
        figures.crystals_without += static_cast<std::uint64_t>(std::count(named.begin(), named.end(), false));
    }
    return figures;
}

json factor_figures(const config::Geometry& g, const config::Calibration& c) {
    std::vector<float> factors;
    std::uint64_t differing = 0;
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local) {
            const float* const of_crystal =
                &c.energy_factor[(std::size_t{unit} * g.crystals_per_du() + local) * c.bins];
            factors.insert(factors.end(), of_crystal, of_crystal + c.bins);
            differing += static_cast<std::uint64_t>(
                std::count_if(of_crystal, of_crystal + c.bins, [&](float f) { return f != *of_crystal; }));
        }
    }
    const auto [low, high] = std::minmax_element(factors.begin(), factors.end());
    const auto zero = std::count(factors.begin(), factors.end(), 0.0F);
    return {{"min_keV_per_adc", *low},  {"median_keV_per_adc", config::median(factors)},
            {"max_keV_per_adc", *high}, {"zero", zero},
            {"bins", c.bins},           {"bins_unlike_first", differing}};
}

}  // namespace

json inspect(const config::Geometry& g, const config::Calibration& c) {
    const PositionFigures found = position_figures(g, c);
    json figures;
    figures["sha256"] = c.sha256;
    figures["origin"] = json::object();
    for (const auto& [name, text] : c.origin)
        figures["origin"][config::printable(name)] = config::printable(text);
    const std::uint32_t positions = g.position_size * g.position_size;
    figures["position_table"] = {
        {"type", config::has_wide_positions(g) ? "u16" : "u8"},
        {"shape", {g.bdm_count, g.du_count, positions}},
        {"outside_fraction", static_cast<double>(found.outside) / static_cast<double>(found.positions)},
        {"crystals_without_position", found.crystals_without}};
    figures["energy_factor"] = factor_figures(g, c);
    figures["energy_factor"]["shape"] = {g.bdm_count, g.du_count, g.crystals_per_du(), c.bins};
    figures["time_offset"] = nullptr;
    if (!c.time_offset.empty()) {
        const auto [low, high] = std::minmax_element(c.time_offset.begin(), c.time_offset.end());
        figures["time_offset"] = {{"shape", {g.crystal_count()}}, {"min_ticks", *low}, {"max_ticks", *high}};
    }
    return figures;
}

std::string inspect_text(const json& f) {
    std::ostringstream out;
    const auto shape = [](const json& table) {
        std::string text;
        for (const json& n : table.at("shape"))
            text.append("[").append(n.dump()).append("]");
        return text;
    };
    const json& p = f.at("position_table");
    const json& e = f.at("energy_factor");
    const json& t = f.at("time_offset");
    out << "sha256          " << f.at("sha256").get<std::string>() << '\n'
        << "position_table  " << p.at("type").get<std::string>() << shape(p) << '\n'
        << "                outside any crystal: " << p.at("outside_fraction").get<double>() * 100 << " %\n"
        << "                crystals without a position: " << p.at("crystals_without_position") << '\n'
        << "energy_factor   f32" << shape(e) << '\n'
        << "                keV per ADC count: min " << e.at("min_keV_per_adc").get<float>() << ", median "
        << e.at("median_keV_per_adc").get<float>() << ", max " << e.at("max_keV_per_adc").get<float>() << '\n'
        << "                zero: " << e.at("zero") << '\n'
        << "                bins unlike the crystal's first: " << e.at("bins_unlike_first") << '\n';
    if (t.is_null()) {
        out << "time_offset     none\n";
    } else {
        out << "time_offset     i32" << shape(t) << '\n'
            << "                ticks: " << t.at("min_ticks") << " to " << t.at("max_ticks") << '\n';
    }
    for (const auto& [name, text] : f.at("origin").items())
        out << name << std::string(name.size() < 15 ? 15 - name.size() : 0, ' ') << ' '
            << text.get<std::string>() << '\n';
    return out.str();
}

}  // namespace petacq::petcal

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

/// The number of positions that map to each (unit, local crystal).
std::vector<std::uint32_t> positions_per_crystal(const config::Geometry& g, const config::Calibration& c,
                                                 std::uint64_t& outside) {
    const std::size_t positions = std::size_t{g.position_size} * g.position_size;
    // Of crystals that the unit does not have, no table can name one.
    std::vector<std::uint32_t> count(std::size_t{g.unit_count()} * g.crystals_per_du(), 1);
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit)
        std::fill_n(count.begin() + static_cast<std::ptrdiff_t>(std::size_t{unit} * g.crystals_per_du()),
                    g.crystals_of_unit(unit), 0U);
    for (std::size_t i = 0; i < c.position_table.size(); ++i) {
        const std::uint32_t origin = c.position_table[i];
        if (origin < g.crystals_of_unit(static_cast<std::uint32_t>(i / positions))) {
            ++count[i / positions * g.crystals_per_du() + g.local_of_origin(origin)];
        } else {
            ++outside;
        }
    }
    return count;
}

json factor_figures(const config::Calibration& c) {
    const auto [low, high] = std::minmax_element(c.energy_factor.begin(), c.energy_factor.end());
    std::uint64_t zero = 0;
    std::uint64_t differing = 0;
    for (std::size_t i = 0; i < c.energy_factor.size(); ++i) {
        if (c.energy_factor[i] == 0) ++zero;
        if (c.energy_factor[i] != c.energy_factor[i / c.bins * c.bins]) ++differing;
    }
    return {{"min_keV_per_adc", *low},  {"median_keV_per_adc", config::median(c.energy_factor)},
            {"max_keV_per_adc", *high}, {"zero", zero},
            {"bins", c.bins},           {"bins_unlike_first", differing}};
}

}  // namespace

json inspect(const config::Geometry& g, const config::Calibration& c) {
    std::uint64_t outside = 0;
    const auto count = positions_per_crystal(g, c, outside);
    json figures;
    figures["sha256"] = c.sha256;
    figures["origin"] = json::object();
    for (const auto& [name, text] : c.origin)
        figures["origin"][config::printable(name)] = config::printable(text);
    const std::uint32_t positions = g.position_size * g.position_size;
    figures["position_table"] = {
        {"type", config::has_wide_positions(g) ? "u16" : "u8"},
        {"shape", {g.bdm_count, g.du_count, positions}},
        {"outside_fraction", static_cast<double>(outside) / static_cast<double>(c.position_table.size())},
        {"crystals_without_position", std::count(count.begin(), count.end(), 0U)}};
    figures["energy_factor"] = factor_figures(c);
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

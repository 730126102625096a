#include "tools/petcal/steps/derive_crystals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "config/base/answer.hpp"
#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "config/base/json_schema.hpp"
#include "config/calibration.hpp"
#include "config/flood_layout.hpp"
#include "config/spectra.hpp"
#include "tools/petcal/base/units.hpp"
#include "tools/petcal/estimate/layered_map.hpp"
#include "tools/petcal/report/reports.hpp"
#include "tools/petcal/results/results.hpp"
#include "tools/petcal/steps/refusals.hpp"

namespace petacq::petcal {

namespace {

using nlohmann::json;

json whole(std::uint32_t count) {
    return {{"type", "integer"}, {"minimum", 0}, {"maximum", count - 1}};
}

json corrections_schema(const config::Scanner& scanner) {
    const config::Geometry& g = scanner.geometry;
    std::uint32_t rows = 1;
    std::uint32_t columns = 1;
    std::size_t layers = 1;
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        if (g.crystals_of_unit(unit) == 0) continue;
        const config::FloodLayout layout(scanner, unit);
        layers = std::max(layers, layout.layers().size());
        for (const config::FloodLayout::Layer& layer : layout.layers()) {
            rows = std::max(rows, layer.rows);
            columns = std::max(columns, layer.columns);
        }
    }
    const json place = {{"type", "number"}, {"minimum", 0}, {"maximum", g.position_size - 1}};
    const json spot = {{"type", "object"},
                       {"additionalProperties", false},
                       {"required", {"bdm", "du", "row", "column", "x", "y"}},
                       {"properties",
                        {{"bdm", whole(g.bdm_count)},
                         {"du", whole(g.du_count)},
                         {"layer", whole(static_cast<std::uint32_t>(layers))},
                         {"row", whole(rows)},
                         {"column", whole(columns)},
                         {"x", place},
                         {"y", place}}}};
    return {{"type", "object"},
            {"additionalProperties", false},
            {"required", {"spots"}},
            {"properties", {{"spots", {{"type", "array"}, {"items", spot}}}}}};
}

void check_shape(const FloodShape& shape) {
    constexpr std::uint32_t least = 3;  // positions per crystal
    const std::uint32_t needed = least * std::max(shape.columns, shape.rows);
    if (shape.size >= needed) return;
    throw config::Error("flood maps: expected at least " + std::to_string(least) +
                        " positions per crystal and direction (position_size " + std::to_string(needed) +
                        "), found position_size " + std::to_string(shape.size) +
                        ": of bins without peaks, as in monolithic blocks, import a table of your own");
}

/// The origin of the crystal of a ring, or the local crystal of the long form, that a correction names.
/// Throws config::Error for one that the unit does not have.
std::uint32_t spot_number(const config::Scanner& scanner, std::uint32_t unit, std::uint32_t layer,
                          std::uint32_t row, std::uint32_t column) {
    const config::Geometry& g = scanner.geometry;
    if (scanner.is_ring()) return row * g.crystals.z + column;
    if (g.crystals_of_unit(unit) == 0)
        throw config::Error("/spots: expected a unit of the scanner, found " + unit_name(g, unit));
    const config::FloodLayout layout(scanner, unit);
    const bool exists = layer < layout.layers().size() && row < layout.layers()[layer].rows &&
                        column < layout.layers()[layer].columns;
    if (!exists) {
        throw config::Error("/spots: expected a crystal of " + unit_name(g, unit) + ", found layer " +
                            std::to_string(layer) + ", row " + std::to_string(row) + ", column " +
                            std::to_string(column));
    }
    const config::FloodLayout::Layer& of = layout.layers()[layer];
    return of.first + (of.rows - 1 - row) * of.columns + column;
}

CrystalsResult crystals_result(const config::Geometry& g, const std::vector<UnitMap>& maps) {
    CrystalsResult result;
    const std::size_t positions = std::size_t{g.position_size} * g.position_size;
    for (std::uint32_t unit = 0; unit < maps.size(); ++unit) {
        const UnitMap& map = maps[unit];
        const std::uint32_t count = g.crystals_of_unit(unit);
        const bool derived = count > 0 && map.refused.empty();
        result.derived.push_back(static_cast<std::uint8_t>(derived));
        if (derived) {
            result.position_table.insert(result.position_table.end(), map.table.begin(), map.table.end());
        } else {
            result.position_table.resize(result.position_table.size() + positions,
                                         config::outside_crystals(g));
        }
        const MapQuality& q = map.quality;
        const double crystals = std::max(count, 1U);
        for (const double figure :
             {q.counts / crystals, q.peaks / crystals, q.separation_x, q.separation_y, q.between_peaks})
            result.quality.push_back(static_cast<float>(figure));
        for (std::uint32_t crystal = 0; crystal < g.crystals_per_du(); ++crystal) {
            const FloodPoint at = derived && crystal < count ? map.spots[crystal] : FloodPoint{-1, -1};
            result.spots.push_back(static_cast<float>(at.x));
            result.spots.push_back(static_cast<float>(at.y));
        }
    }
    return result;
}

config::Written figures_of(const config::Geometry& g, const std::vector<UnitMap>& maps) {
    std::size_t units = 0;
    std::size_t derived = 0;
    std::size_t peaks = 0;
    double crystals = 0;
    double counts = 0;
    double separation = 1e9;
    double between = 0;
    for (std::uint32_t unit = 0; unit < maps.size(); ++unit) {
        const UnitMap& map = maps[unit];
        units += g.crystals_of_unit(unit) > 0 ? 1 : 0;
        if (g.crystals_of_unit(unit) == 0 || !map.refused.empty()) continue;
        ++derived;
        crystals += g.crystals_of_unit(unit);
        peaks += map.quality.peaks;
        counts += map.quality.counts;
        const double least = std::min(map.quality.separation_x, map.quality.separation_y);
        separation = std::min(separation, least);
        between = std::max(between, map.quality.between_peaks);
    }
    if (derived == 0) return {};
    config::Written written;
    written.facts = {{"units", units},
                     {"units_derived", derived},
                     {"crystals", static_cast<std::uint64_t>(crystals)},
                     {"peaks", peaks},
                     {"counts_per_crystal", counts / crystals},
                     {"least_separation", separation},
                     {"most_between_peaks_percent", 100 * between}};
    written.text = fmt::format(
        "units               {} of {}\n"
        "peaks               {} of {:.0f} crystals\n"
        "counts per crystal  {:.0f}\n"
        "separation          at least {:.2f} (pitch / FWHM)\n"
        "between peaks       at most {:.1f} % of counts\n",
        derived, units, peaks, crystals, counts / crystals, separation, 100 * between);
    return written;
}

}  // namespace

std::vector<std::vector<KnownSpot>> load_corrections(const std::filesystem::path& file,
                                                     const config::Scanner& scanner) {
    const config::Geometry& g = scanner.geometry;
    std::vector<std::vector<KnownSpot>> known(std::size_t{g.bdm_count} * g.du_count);
    json document = config::read_json_file(file);
    config::naming_file(file, [&] {
        config::apply_schema(corrections_schema(scanner), document);
        std::set<std::pair<std::size_t, std::uint32_t>> seen;
        for (const json& spot : document.at("spots")) {
            const auto value = [&](const char* key) { return spot.at(key).get<std::uint32_t>(); };
            const std::uint32_t unit = value("bdm") * g.du_count + value("du");
            const std::uint32_t layer = spot.contains("layer") ? value("layer") : 0;
            const std::uint32_t origin = spot_number(scanner, unit, layer, value("row"), value("column"));
            if (!seen.emplace(unit, origin).second) {
                throw config::Error("/spots: expected each crystal once, found row " +
                                    std::to_string(value("row")) + ", column " +
                                    std::to_string(value("column")) + " of " + unit_name(g, unit) + " twice");
            }
            known[unit].push_back({origin, {spot.at("x").get<double>(), spot.at("y").get<double>()}});
        }
    });
    return known;
}

config::Written derive_crystals(const config::Scanner& scanner, const DeriveCrystalsOptions& o) {
    const config::Geometry& g = scanner.geometry;
    const std::size_t positions = std::size_t{g.position_size} * g.position_size;
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit)
        if (g.crystals_of_unit(unit) > 0) check_shape(flood_shape(scanner, unit));
    std::vector<std::vector<KnownSpot>> known(g.unit_count());
    if (!o.corrections.empty()) known = load_corrections(o.corrections, scanner);
    const config::Spectra spectra = config::load_spectra(o.spectra, g);
    std::vector<UnitMap> maps(known.size());
    for_each_unit("crystal maps", maps.size(), [&](std::size_t unit) {
        const auto number = static_cast<std::uint32_t>(unit);
        if (g.crystals_of_unit(number) == 0) return;
        maps[unit] = derive_map(scanner, number,
                                std::span(spectra.floods).subspan(unit * positions, positions), known[unit]);
    });

    std::vector<std::string> refused;
    refused.reserve(known.size());
    for (const UnitMap& map : maps)
        refused.push_back(map.refused);
    if (!o.report.empty()) write_crystals_report(o.report, scanner, spectra, maps, known);
    std::vector<std::string> printed = check_refusals(g, refused, o.partial);
    CrystalsResult result = crystals_result(g, maps);
    result.origin = made_by("petcal derive crystals");
    result.origin["scanner"] = scanner.name;
    result.origin["spectra_sha256"] = config::sha256_of_file(o.spectra);
    if (!o.corrections.empty()) result.origin["corrections_sha256"] = config::sha256_of_file(o.corrections);
    save_crystals(o.output, g, result);
    config::Written written = figures_of(g, maps);
    written.printed = std::move(printed);
    return written;
}

}  // namespace petacq::petcal

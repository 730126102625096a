#include "tools/petcal/steps/derive_crystals.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "config/base/json_schema.hpp"
#include "config/calibration.hpp"
#include "config/spectra.hpp"
#include "tools/petcal/base/units.hpp"
#include "tools/petcal/report/reports.hpp"
#include "tools/petcal/results/results.hpp"
#include "tools/petcal/steps/refusals.hpp"

namespace petacq::petcal {

namespace {

using nlohmann::json;

json whole(std::uint32_t count) {
    return {{"type", "integer"}, {"minimum", 0}, {"maximum", count - 1}};
}

json corrections_schema(const config::Geometry& g) {
    const json place = {{"type", "number"}, {"minimum", 0}, {"maximum", g.position_size - 1}};
    const json spot = {{"type", "object"},
                       {"additionalProperties", false},
                       {"required", {"bdm", "du", "row", "column", "x", "y"}},
                       {"properties",
                        {{"bdm", whole(g.bdm_count)},
                         {"du", whole(g.du_count)},
                         {"row", whole(g.crystals.y)},
                         {"column", whole(g.crystals.z)},
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
                        "), found position_size " + std::to_string(shape.size));
}

CrystalsResult crystals_result(const FloodShape& shape, const std::vector<UnitMap>& maps) {
    CrystalsResult result;
    for (const UnitMap& map : maps) {
        const bool derived = map.refused.empty();
        result.derived.push_back(static_cast<std::uint8_t>(derived));
        if (derived) {
            result.position_table.insert(result.position_table.end(), map.table.begin(), map.table.end());
        } else {
            result.position_table.resize(result.position_table.size() + shape.positions(),
                                         config::outside_crystals(shape.crystals()));
        }
        const MapQuality& q = map.quality;
        const double crystals = shape.crystals();
        for (const double figure :
             {q.counts / crystals, q.peaks / crystals, q.separation_x, q.separation_y, q.between_peaks})
            result.quality.push_back(static_cast<float>(figure));
        for (std::uint32_t origin = 0; origin < shape.crystals(); ++origin) {
            const FloodPoint at = derived ? map.spots[origin] : FloodPoint{-1, -1};
            result.spots.push_back(static_cast<float>(at.x));
            result.spots.push_back(static_cast<float>(at.y));
        }
    }
    return result;
}

void print_crystals(const FloodShape& shape, const std::vector<UnitMap>& maps) {
    std::size_t derived = 0;
    std::size_t peaks = 0;
    double counts = 0;
    double separation = 1e9;
    double between = 0;
    for (const UnitMap& map : maps) {
        if (!map.refused.empty()) continue;
        ++derived;
        peaks += map.quality.peaks;
        counts += map.quality.counts;
        const double least = std::min(map.quality.separation_x, map.quality.separation_y);
        separation = std::min(separation, least);
        between = std::max(between, map.quality.between_peaks);
    }
    if (derived == 0) return;
    const auto crystals = static_cast<double>(derived * shape.crystals());
    std::printf("units               %zu of %zu\n", derived, maps.size());
    std::printf("peaks               %zu of %.0f crystals\n", peaks, crystals);
    std::printf("counts per crystal  %.0f\n", counts / crystals);
    std::printf("separation          at least %.2f (pitch / FWHM)\n", separation);
    std::printf("between peaks       at most %.1f %% of counts\n", 100 * between);
}

}  // namespace

std::vector<std::vector<KnownSpot>> load_corrections(const std::filesystem::path& file,
                                                     const config::Geometry& g) {
    std::vector<std::vector<KnownSpot>> known(std::size_t{g.bdm_count} * g.du_count);
    json document = config::read_json_file(file);
    config::naming_file(file, [&] {
        config::apply_schema(corrections_schema(g), document);
        std::set<std::pair<std::size_t, std::uint32_t>> seen;
        for (const json& spot : document.at("spots")) {
            const auto value = [&](const char* key) { return spot.at(key).get<std::uint32_t>(); };
            const std::size_t unit = std::size_t{value("bdm")} * g.du_count + value("du");
            const std::uint32_t origin = value("row") * g.crystals.z + value("column");
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

void derive_crystals(const config::Scanner& scanner, const DeriveCrystalsOptions& o) {
    const config::Geometry& g = scanner.geometry;
    const FloodShape shape = flood_shape(g);
    check_shape(shape);
    std::vector<std::vector<KnownSpot>> known(std::size_t{g.bdm_count} * g.du_count);
    if (!o.corrections.empty()) known = load_corrections(o.corrections, g);
    const config::Spectra spectra = config::load_spectra(o.spectra, g);
    std::vector<UnitMap> maps(known.size());
    const auto flood_of = [&](std::size_t unit) {
        return std::span(spectra.floods).subspan(unit * shape.positions(), shape.positions());
    };
    for_each_unit("crystal maps", maps.size(), [&](std::size_t unit) {
        maps[unit] = derive_unit_map(shape, flood_of(unit), known[unit]);
    });

    std::vector<std::string> refused;
    refused.reserve(known.size());
    for (const UnitMap& map : maps)
        refused.push_back(map.refused);
    if (!o.report.empty()) write_crystals_report(o.report, scanner, spectra, maps, known);
    check_refusals(g, refused, o.partial);
    CrystalsResult result = crystals_result(shape, maps);
    result.origin = made_by("petcal derive crystals");
    result.origin["scanner"] = scanner.name;
    result.origin["spectra_sha256"] = config::sha256_of_file(o.spectra);
    if (!o.corrections.empty()) result.origin["corrections_sha256"] = config::sha256_of_file(o.corrections);
    save_crystals(o.output, g, result);
    print_crystals(shape, maps);
}

}  // namespace petacq::petcal

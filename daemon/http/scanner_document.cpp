#include "daemon/http/scanner_document.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "config/arrangement.hpp"
#include "config/shape/unrolled_map.hpp"

namespace petacq::daemon {

namespace {

using config::Arrangement;
using nlohmann::json;

/// A crystal is `first` of its module, plus `first` of its layer, plus column_step for each column and
/// row_step for each row.
json layers_of(const Arrangement& arrangement, std::uint32_t module) {
    json layers = json::array();
    const config::ModuleType& type = arrangement.type_of(arrangement.modules()[module]);
    const std::uint32_t first = arrangement.crystal({module, 0, 0, 0});
    for (std::uint32_t i = 0; i < type.layers.size(); ++i) {
        const config::CrystalLayer& layer = type.layers[i];
        const std::uint32_t begin = arrangement.crystal({module, i, 0, 0});
        // A layer of one column, or of one row, takes no step.
        const auto step = [&](std::uint32_t count, std::uint32_t column, std::uint32_t row) {
            return count > 1 ? arrangement.crystal({module, i, column, row}) - begin : 0;
        };
        layers.push_back({{"y_mm", layer.y.centres},
                          {"y_size_mm", layer.y.sizes},
                          {"z_mm", layer.z.centres},
                          {"z_size_mm", layer.z.sizes},
                          {"front_mm", layer.front_mm},
                          {"length_mm", layer.length_mm},
                          {"material", layer.material},
                          {"first", begin - first},
                          {"column_step", step(layer.y.count(), 1, 0)},
                          {"row_step", step(layer.z.count(), 0, 1)}});
    }
    return layers;
}

json types_of(const Arrangement& arrangement) {
    json types = json::array();
    for (const config::ModuleType& type : arrangement.types())
        types.push_back({{"name", type.name}, {"layers", json::array()}});
    for (std::uint32_t m = 0; m < arrangement.modules().size(); ++m) {
        json& layers = types[arrangement.modules()[m].type]["layers"];
        if (layers.empty()) layers = layers_of(arrangement, m);
    }
    return types;
}

json modules_of(const Arrangement& arrangement, const config::UnrolledMap& map) {
    json modules = json::array();
    for (std::uint32_t m = 0; m < arrangement.modules().size(); ++m) {
        const config::Module& module = arrangement.modules()[m];
        const config::UnrolledMap::ModuleOnMap& on_map = map.modules()[m];
        modules.push_back(
            {{"type", module.type},
             {"group", module.name},
             {"first", arrangement.crystal({m, 0, 0, 0})},
             {"front_mm", module.front_mm},
             {"map", {{"front_mm", on_map.front}, {"y", on_map.along_y}, {"z", on_map.along_z}}}});
    }
    return modules;
}

/// The unit of each crystal, in the order of crystals: a unit, how many crystals, and so on.
std::vector<std::uint32_t> runs_of_units(const config::Geometry& g) {
    std::vector<std::uint32_t> unit_of(g.crystal_count());
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local)
            unit_of[g.crystal(unit / g.du_count, unit % g.du_count, local)] = unit;
    }
    std::vector<std::uint32_t> runs;
    for (std::size_t i = 0; i < unit_of.size(); ++i) {
        if (i == 0 || unit_of[i] != unit_of[i - 1]) runs.insert(runs.end(), {unit_of[i], 0});
        ++runs.back();
    }
    return runs;
}

json ring_of(const config::Geometry& g) {
    if (!g.is_ring()) return nullptr;
    return {{"crystals", g.crystals_in_ring()},
            {"rings", g.rings()},
            {"crystals_per_module",
             {{"around", g.crystals_per_module_y()}, {"along", g.blocks.z * g.crystals.z}}}};
}

}  // namespace

std::string scanner_document(const config::Scanner& scanner) {
    const auto arrangement = config::arrangement_of(scanner);
    const config::UnrolledMap map(arrangement);
    const json document = {{"name", scanner.name},
                           {"crystals", arrangement->crystal_count()},
                           {"units_per_module", scanner.geometry.du_count},
                           {"ring", ring_of(scanner.geometry)},
                           {"types", types_of(*arrangement)},
                           {"modules", modules_of(*arrangement, map)},
                           {"map", {{"width_mm", map.width_mm()}, {"height_mm", map.height_mm()}}},
                           {"unit_of_crystals", runs_of_units(scanner.geometry)}};
    return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace petacq::daemon

#include "tools/petcal/draw/scene.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace petacq::petcal {

namespace {

using nlohmann::json;

constexpr double decimals = 1e4;  // of mm in the page

json rounded(double value) {
    return std::round(value * decimals) / decimals;
}

json rounded(const config::Vector3& v) {
    return {rounded(v[0]), rounded(v[1]), rounded(v[2])};
}

void place_corners(const config::Arrangement& arrangement, SceneBox& box) {
    const config::Module& m = arrangement.modules()[box.module];
    const config::CrystalLayer& layer = arrangement.type_of(m).layers[box.layer];
    const auto low = [](const config::CrystalRow& row, std::uint32_t i) {
        return row.centres[i] - row.sizes[i] / 2;
    };
    const auto high = [](const config::CrystalRow& row, std::uint32_t i) {
        return row.centres[i] + row.sizes[i] / 2;
    };
    for (std::size_t i = 0; i < box.corners.size(); ++i) {
        const double y = (i & 1U) != 0 ? high(layer.y, box.last_column) : low(layer.y, box.first_column);
        const double z = (i & 2U) != 0 ? high(layer.z, box.last_row) : low(layer.z, box.first_row);
        const double outward = layer.front_mm + ((i & 4U) != 0 ? layer.length_mm : 0);
        for (std::size_t axis = 0; axis < 3; ++axis) {
            box.corners[i][axis] =
                m.front_mm[axis] + outward * m.outward[axis] + y * m.along_y[axis] + z * m.along_z[axis];
        }
    }
}

/// [bdm] index of the source that carries it.
std::map<std::uint32_t, std::uint32_t> boards_of(const config::Scanner& scanner) {
    std::map<std::uint32_t, std::uint32_t> out;
    for (std::uint32_t i = 0; i < scanner.sources.size(); ++i)
        for (const std::uint32_t bdm : scanner.sources[i].bdms)
            out.emplace(bdm, i);
    return out;
}

std::string name_of(const config::Source& source) {
    return source.id ? std::to_string(*source.id) : source.address + ":" + std::to_string(source.port);
}

json row_json(const config::CrystalRow& row) {
    json centres = json::array();
    json sizes = json::array();
    for (std::size_t i = 0; i < row.centres.size(); ++i) {
        centres.push_back(rounded(row.centres[i]));
        sizes.push_back(rounded(row.sizes[i]));
    }
    return {{"centres", centres}, {"sizes", sizes}};
}

}  // namespace

Scene scene_of(const config::Scanner& scanner) {
    const config::Geometry& g = scanner.geometry;
    const auto arrangement = config::arrangement_of(scanner);
    const auto boards = boards_of(scanner);
    Scene scene;
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        std::map<std::pair<std::uint32_t, std::uint32_t>, SceneBox> of_layer;  // module, layer
        const std::uint32_t bdm = unit / g.du_count;
        for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local) {
            const config::CrystalAddress at = arrangement->address(g.crystal(bdm, unit % g.du_count, local));
            const auto [found, fresh] = of_layer.try_emplace(
                {at.module, at.layer},
                SceneBox{
                    at.module, at.layer, bdm, unit % g.du_count, {}, at.column, at.column, at.row, at.row});
            SceneBox& box = found->second;
            if (const auto board = boards.find(bdm); fresh && board != boards.end())
                box.board = board->second;
            box.first_column = std::min(box.first_column, at.column);
            box.last_column = std::max(box.last_column, at.column);
            box.first_row = std::min(box.first_row, at.row);
            box.last_row = std::max(box.last_row, at.row);
        }
        for (auto& [unused, box] : of_layer) {
            place_corners(*arrangement, box);
            for (const config::Vector3& c : box.corners)
                scene.reach_mm = std::max(scene.reach_mm, std::hypot(c[0], c[1], c[2]));
            scene.boxes.push_back(box);
        }
    }
    return scene;
}

std::optional<std::uint32_t> number_of(const SceneBox& box, const config::Arrangement& arrangement,
                                       SceneColour by) {
    switch (by) {
        case SceneColour::module:
            return box.module;
        case SceneColour::bdm:
            return box.bdm;
        case SceneColour::board:
            return box.board;
        case SceneColour::type:
            return arrangement.modules()[box.module].type;
        case SceneColour::layer:
            return box.layer;
    }
    return std::nullopt;
}

std::uint32_t colour_of(std::optional<std::uint32_t> number) {
    if (!number) return 0x9AA5B1;
    // Hues a golden section apart; saturation and value are the same for all.
    const double hue = std::fmod(0.58 + 0.618034 * *number, 1.0) * 6;
    const auto part = [&](double offset) {
        const double at = std::fmod(offset + hue, 6.0);
        const double ramp = std::clamp(std::min(at, 4 - at), 0.0, 1.0);
        return static_cast<std::uint32_t>(std::lround(255 * (0.85 - 0.5 * ramp)));
    };
    return part(5) << 16U | part(3) << 8U | part(1);
}

json json_of(const Scene& scene, const config::Scanner& scanner) {
    const auto arrangement = config::arrangement_of(scanner);
    json types = json::array();
    for (const config::ModuleType& type : arrangement->types()) {
        json layers = json::array();
        for (const config::CrystalLayer& layer : type.layers) {
            layers.push_back({{"front", rounded(layer.front_mm)},
                              {"length", rounded(layer.length_mm)},
                              {"material", layer.material},
                              {"y", row_json(layer.y)},
                              {"z", row_json(layer.z)}});
        }
        types.push_back({{"name", type.name}, {"layers", layers}});
    }
    json modules = json::array();
    for (std::uint32_t m = 0; m < arrangement->modules().size(); ++m) {
        const config::Module& module = arrangement->modules()[m];
        // The number of a crystal is that of the first of its layer plus steps by column and row.
        json numbers = json::array();
        const auto& layers = arrangement->type_of(module).layers;
        for (std::uint32_t layer = 0; layer < layers.size(); ++layer) {
            const std::uint32_t first = arrangement->crystal({m, layer, 0, 0});
            const auto step = [&](std::uint32_t column, std::uint32_t row) {
                return arrangement->crystal({m, layer, column, row}) - first;
            };
            numbers.push_back({first, layers[layer].y.count() > 1 ? step(1, 0) : 0,
                               layers[layer].z.count() > 1 ? step(0, 1) : 0});
        }
        modules.push_back({{"type", module.type},
                           {"group", module.name},
                           {"front", rounded(module.front_mm)},
                           {"outward", module.outward},
                           {"along_y", module.along_y},
                           {"along_z", module.along_z},
                           {"numbers", numbers}});
    }
    json boxes = json::array();
    for (const SceneBox& b : scene.boxes) {
        boxes.push_back({b.module, b.layer, b.bdm, b.du, b.board ? json(*b.board) : json(), b.first_column,
                         b.last_column, b.first_row, b.last_row});
    }
    json boards = json::array();
    for (const config::Source& source : scanner.sources)
        boards.push_back(name_of(source));
    return {{"types", types},
            {"modules", modules},
            {"boxes", boxes},
            {"boards", boards},
            {"crystals", arrangement->crystal_count()},
            {"reach", rounded(scene.reach_mm)}};
}

}  // namespace petacq::petcal

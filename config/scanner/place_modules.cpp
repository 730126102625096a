#include "config/scanner/place_modules.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <utility>

#include "config/base/error.hpp"
#include "config/scanner/layer_box.hpp"

namespace petacq::config {

namespace {

using nlohmann::json;

constexpr std::size_t max_placed = 65536;
constexpr std::array placements = {"ring", "arc", "polygon", "box", "panel", "place"};

double degrees(double angle) {
    return angle * std::numbers::pi / 180;
}

/// A module that faces the axis at this angle, its front `radius` away, moved by `shift` counter-clockwise.
Module facing_axis(double angle_deg, double radius, double shift) {
    const double c = std::cos(degrees(angle_deg));
    const double s = std::sin(degrees(angle_deg));
    Module m;
    m.outward = {c, s, 0};
    m.along_y = {-s, c, 0};
    m.along_z = {0, 0, 1};
    m.front_mm = {radius * c - shift * s, radius * s + shift * c, 0};
    return m;
}

/// `count` modules side by side.
void add_side(std::vector<Module>& to, double angle_deg, double radius, std::uint32_t count, double pitch,
              double shift) {
    for (std::uint32_t i = 0; i < count; ++i)
        to.push_back(facing_axis(angle_deg, radius, shift + (i - (count - 1) / 2.0) * pitch));
}

std::vector<Module> ring_of(const json& j, std::uint32_t of) {
    std::vector<Module> modules;
    const auto count = j.at("count").get<std::uint32_t>();
    for (std::uint32_t k = 0; k < count; ++k) {
        modules.push_back(
            facing_axis(j.at("first_angle_deg").get<double>() + 360.0 * k / of, j.at("radius_mm"), 0));
        modules.back().around = {k, of};
    }
    return modules;
}

std::vector<Module> polygon_of(const json& j, const std::string& path) {
    std::vector<Module> modules;
    const auto sides = j.at("sides").get<std::uint32_t>();
    const auto per_side = j.at("per_side").get<std::uint32_t>();
    if (std::size_t{sides} * per_side > max_placed) {
        throw Error(fmt::format("{}: expected at most {} modules in all, found {}", path, max_placed,
                                std::size_t{sides} * per_side));
    }
    for (std::uint32_t side = 0; side < sides; ++side) {
        add_side(modules, j.at("first_angle_deg").get<double>() + 360.0 * side / sides, j.at("radius_mm"),
                 per_side, j.at("pitch_mm"), 0);
    }
    for (std::uint32_t k = 0; k < modules.size(); ++k)
        modules[k].around = {k, sides * per_side};
    return modules;
}

std::vector<Module> box_of(const json& j) {
    std::vector<Module> modules;
    const auto per_side = j.at("per_side").get<std::uint32_t>();
    for (std::uint32_t side = 0; side < 4; ++side) {
        const double across = j.at(side % 2 == 0 ? "x_mm" : "y_mm").get<double>();
        add_side(modules, 90.0 * side, across / 2, per_side, j.at("pitch_mm"), 0);
    }
    for (std::uint32_t k = 0; k < modules.size(); ++k)
        modules[k].around = {k, 4 * per_side};
    return modules;
}

Vector3 cross(const Vector3& a, const Vector3& b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
double dot(const Vector3& a, const Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
Vector3 unit(const Vector3& v) {
    const double length = std::sqrt(dot(v, v));
    return {v[0] / length, v[1] / length, v[2] / length};
}

Module placed(const json& j, const std::string& path) {
    Module m;
    m.front_mm = j.at("front_mm").get<Vector3>();
    const auto outward = j.at("outward").get<Vector3>();
    if (dot(outward, outward) <= 0) throw Error(path + "/outward: expected a direction, found [0, 0, 0]");
    m.outward = unit(outward);
    // The axis of the scanner, turned into the plane of the front face; +y where the module faces along it.
    const bool along_axis = std::abs(m.outward[2]) > 1 - 1e-9;
    const Vector3 up = along_axis ? Vector3{0, 1, 0} : Vector3{0, 0, 1};
    const Vector3 y = unit(cross(up, m.outward));
    const Vector3 z = cross(m.outward, y);
    const double c = std::cos(degrees(j.at("turn_deg")));
    const double s = std::sin(degrees(j.at("turn_deg")));
    for (std::size_t i = 0; i < 3; ++i) {
        m.along_y[i] = c * y[i] + s * z[i];
        m.along_z[i] = c * z[i] - s * y[i];
    }
    return m;
}

std::vector<Module> modules_of(const json& item, const std::string& path) {
    std::string used;
    for (const char* const name : placements) {
        if (item.at(name).is_null()) continue;
        if (!used.empty()) {
            std::string message = path + ": expected one of ring, arc, polygon, box, panel and place, found ";
            message.append(used).append(" and ").append(name);
            throw Error(message);
        }
        used = name;
    }
    if (used.empty())
        throw Error(path + ": expected one of ring, arc, polygon, box, panel and place, found none");
    const json& j = item.at(used);
    if (used == "ring") return ring_of(j, j.at("count"));
    if (used == "arc") {
        if (j.at("count") > j.at("of")) {
            throw Error(path + "/arc/count: expected at most of = " + j.at("of").dump() + ", found " +
                        j.at("count").dump());
        }
        return ring_of(j, j.at("of"));
    }
    if (used == "polygon") return polygon_of(j, path);
    if (used == "box") return box_of(j);
    if (used == "place") return {placed(j, path + "/place")};
    std::vector<Module> panel;
    add_side(panel, j.at("angle_deg"), j.at("radius_mm"), j.at("count"), j.at("pitch_mm"), j.at("shift_mm"));
    return panel;
}

/// How far one has to move until a plane parts them; negative: how far they are apart. The plane is at a
/// right angle to an edge or to a pair of edges.
double overlap_mm(const LayerBox& a, const LayerBox& b) {
    Vector3 apart{};
    for (std::size_t i = 0; i < 3; ++i)
        apart[i] = b.middle[i] - a.middle[i];
    const auto overlap_along = [&](const Vector3& direction) {
        const double length = std::sqrt(dot(direction, direction));
        if (length < 1e-9) return std::numeric_limits<double>::infinity();  // parallel edges
        double reach = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            reach += a.half[i] * std::abs(dot(a.axes[i], direction));
            reach += b.half[i] * std::abs(dot(b.axes[i], direction));
        }
        return (reach - std::abs(dot(apart, direction))) / length;
    };
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < 3; ++i) {
        least = std::min({least, overlap_along(a.axes[i]), overlap_along(b.axes[i])});
        for (std::size_t k = 0; k < 3; ++k)
            least = std::min(least, overlap_along(cross(a.axes[i], b.axes[k])));
    }
    return least;
}

/// `item_of`: which item of `modules` placed each.
void check_overlaps(const std::vector<Module>& modules, const std::vector<std::size_t>& item_of,
                    const std::vector<ModuleType>& types) {
    // A description may fill the room between its modules to the last digit, and that of an imported geometry
    // is rounded. As in petacq/scanner/module_overlaps.py.
    constexpr double touching_mm = 1e-3;
    const std::vector<LayerBox> boxes = boxes_of(modules, types);
    double longest = 0;
    for (const LayerBox& box : boxes)
        longest = std::max(longest, box.reach());
    const auto spread = [&](std::size_t axis) {
        const auto [low, high] = std::minmax_element(
            boxes.begin(), boxes.end(),
            [&](const auto& a, const auto& b) { return a.middle[axis] < b.middle[axis]; });
        return high->middle[axis] - low->middle[axis];
    };
    // Along the axis on which they are spread the furthest, few middles are so near each other that the boxes
    // can overlap.
    const std::size_t along = spread(2) > std::max(spread(0), spread(1)) ? 2 : spread(1) > spread(0) ? 1 : 0;
    std::vector<std::uint32_t> order(boxes.size());
    for (std::uint32_t i = 0; i < order.size(); ++i)
        order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(boxes[a].middle[along], a) < std::pair(boxes[b].middle[along], b);
    });
    const auto named = [&](std::uint32_t module) {
        return fmt::format("module {} (of /modules/{})", module, item_of[module]);
    };
    for (std::size_t i = 0; i < order.size(); ++i) {
        const LayerBox& a = boxes[order[i]];
        for (std::size_t k = i + 1; k < order.size(); ++k) {
            const LayerBox& b = boxes[order[k]];
            if (b.middle[along] - a.middle[along] > a.reach() + longest) break;
            const double reach = a.reach() + b.reach();
            if (std::abs(b.middle[0] - a.middle[0]) > reach || std::abs(b.middle[1] - a.middle[1]) > reach ||
                std::abs(b.middle[2] - a.middle[2]) > reach)
                continue;
            if (a.module == b.module) continue;
            const double mm = overlap_mm(a, b);
            if (mm < touching_mm) continue;
            const auto [first, second] = std::minmax(a.module, b.module);
            throw Error(
                fmt::format("/modules: expected modules that do not overlap; {} overlaps {} by {:.3g} mm",
                            named(first), named(second), mm));
        }
    }
}

}  // namespace

std::vector<Module> place_modules(const json& items, const std::vector<ModuleType>& types) {
    std::vector<Module> all;
    std::vector<std::size_t> item_of;
    std::uint64_t crystals = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const json& item = items[i];
        const std::string path = "/modules/" + std::to_string(i);
        const auto name = item.at("type").get<std::string>();
        const auto type =
            std::find_if(types.begin(), types.end(), [&](const ModuleType& t) { return t.name == name; });
        if (type == types.end()) {
            throw Error(path + "/type: expected the name of one of /module_types, found " +
                        json(name).dump(-1, ' ', false, json::error_handler_t::replace));
        }
        const std::vector<Module> around = modules_of(item, path);
        const json& along = item.at("along_z");
        const auto repeats = along.at("count").get<std::uint32_t>();
        if (repeats > 1 && along.at("pitch_mm") == 0) {
            throw Error(fmt::format("{}/along_z/pitch_mm: expected above 0 beside count = {}, found 0", path,
                                    repeats));
        }
        if (all.size() + around.size() * repeats > max_placed) {
            throw Error(path + ": expected at most " + std::to_string(max_placed) +
                        " modules in all, found " + std::to_string(all.size() + around.size() * repeats));
        }
        crystals += std::uint64_t{around.size()} * repeats * type->crystal_count();
        if (crystals > max_crystals) {
            throw Error(fmt::format("{}: expected at most {} crystals in all, found {}", path, max_crystals,
                                    crystals));
        }
        for (std::uint32_t k = 0; k < repeats; ++k) {
            const double z = along.at("middle_mm").get<double>() +
                             (k - (repeats - 1) / 2.0) * along.at("pitch_mm").get<double>();
            for (Module m : around) {
                m.type = static_cast<std::uint32_t>(type - types.begin());
                m.name = item.at("group").get<std::string>();
                m.front_mm[2] += z;
                all.push_back(std::move(m));
                item_of.push_back(i);
            }
        }
    }
    check_overlaps(all, item_of, types);
    return all;
}

}  // namespace petacq::config

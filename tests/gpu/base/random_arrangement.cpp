#include "tests/gpu/base/random_arrangement.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "config/base/error.hpp"

namespace petacq::test {

namespace {

using nlohmann::json;

json random_row(Rng& rng) {
    if (rng.chance(0.6)) {
        json row = {{"count", rng.between(1U, 4U)}, {"pitch_mm", 2 + rng.unit()}};
        if (rng.chance(0.5)) row["size_mm"] = 1.8;
        return row;
    }
    json row = {{"sizes_mm", json::array()}};
    const std::uint32_t count = rng.between(1U, 4U);
    for (std::uint32_t i = 0; i < count; ++i)
        row["sizes_mm"].push_back(1 + rng.unit());
    if (count > 1) row["gaps"] = {{{"after", 1}, {"mm", rng.unit()}}};
    return row;
}

std::uint32_t count_of(const json& row) {
    return row.contains("count") ? row["count"].get<std::uint32_t>()
                                 : static_cast<std::uint32_t>(row["sizes_mm"].size());
}

json random_type(const std::string& name, Rng& rng) {
    json type = {{"name", name}, {"layers", json::array()}};
    const std::uint32_t layers = rng.between(1U, 2U);
    for (std::uint32_t i = 0; i < layers; ++i) {
        type["layers"].push_back(
            {{"y", random_row(rng)}, {"z", random_row(rng)}, {"length_mm", 2 + 5 * rng.unit()}});
    }
    const std::uint32_t columns = count_of(type["layers"][0]["y"]);
    if (layers == 2 && rng.chance(0.5)) {
        type["units"] = {{{"layers", {0, 0}}}, {{"layers", {1, 1}}}};
    } else if (layers == 1 && columns > 1 && rng.chance(0.5)) {
        const std::uint32_t first = rng.between(0U, columns - 2);
        type["units"] = {{{"y", {0, first}}}, {{"y", {first + 1, columns - 1}}}};
    }
    return type;
}

json random_item(std::size_t index, Rng& rng) {
    json item = {{"type", rng.chance(0.6) ? "a" : "b"}};
    const std::vector<std::string> names{"", "inner", "outer"};
    item["group"] = rng.pick(names);
    // Each item further out than the one before.
    const double radius = 30 + 45 * static_cast<double>(index) + 5 * rng.unit();
    const double pitch = 14 + rng.unit();
    switch (rng.index(6)) {
        case 0:
            item["ring"] = {
                {"count", rng.between(1U, 9U)}, {"radius_mm", radius}, {"first_angle_deg", 90 * rng.unit()}};
            break;
        case 1:
            item["arc"] = {
                {"count", rng.between(1U, 5U)}, {"of", rng.between(5U, 9U)}, {"radius_mm", radius}};
            break;
        case 2:
            item["polygon"] = {{"sides", rng.between(3U, 6U)},
                               {"per_side", rng.between(1U, 2U)},
                               {"pitch_mm", pitch},
                               {"radius_mm", radius}};
            break;
        case 3:
            item["box"] = {{"x_mm", 2 * radius},
                           {"y_mm", 2 * radius},
                           {"per_side", rng.between(1U, 2U)},
                           {"pitch_mm", pitch}};
            break;
        case 4:
            item["panel"] = {{"radius_mm", radius},
                             {"angle_deg", 360 * rng.unit()},
                             {"count", rng.between(1U, 3U)},
                             {"pitch_mm", pitch}};
            break;
        default:
            item["place"] = {{"front_mm", {radius, 5 * rng.unit(), 20 * rng.unit() - 10}},
                             {"outward", {1 + rng.unit(), rng.unit(), rng.unit() - 0.5}},
                             {"turn_deg", 360 * rng.unit()}};
            break;
    }
    if (rng.chance(0.5)) item["along_z"] = {{"count", 2}, {"pitch_mm", pitch}, {"middle_mm", rng.unit()}};
    return item;
}

json random_good_pairs(const json& modules, Rng& rng) {
    json pairs = json::object();
    if (rng.chance(0.4)) {
        pairs["between"] = json::array();
        for (const json& a : modules) {
            for (const json& b : modules) {
                const json pair = {a["group"], b["group"]};
                const json turned = {b["group"], a["group"]};
                const auto listed = [&](const json& j) { return j == pair || j == turned; };
                json& between = pairs["between"];
                if (rng.chance(0.7) && std::none_of(between.begin(), between.end(), listed))
                    between.push_back(pair);
            }
        }
    }
    if (rng.chance(0.4)) pairs["min_angle_deg"] = 120 * rng.unit();
    if (rng.chance(0.3)) pairs["max_z_difference_mm"] = 20 * rng.unit();
    if (rng.chance(0.5)) {
        // Whole numbers make lines that just touch it.
        const double size = rng.chance(0.3) ? rng.between(5, 40) : 5 + 35 * rng.unit();
        if (rng.chance(0.5)) {
            pairs["cylinder"] = {{"radius_mm", size}, {"length_mm", 5 + 20 * rng.unit()}};
        } else {
            pairs["box"] = {{"x_mm", size}, {"y_mm", 5 + 35 * rng.unit()}, {"z_mm", 5 + 20 * rng.unit()}};
        }
    }
    return pairs;
}

/// Any address for each unit, some addresses without one.
json listed_units(const config::Scanner& scanner, Rng& rng) {
    const config::Geometry& g = scanner.geometry;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> parts;  // module, unit
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        if (g.crystals_of_unit(unit) > 0) parts.emplace_back(unit / g.du_count, unit % g.du_count);
    }
    std::vector<std::uint32_t> addresses(parts.size() + rng.between(0U, 5U));
    for (std::uint32_t i = 0; i < addresses.size(); ++i)
        addresses[i] = i;
    for (std::size_t i = addresses.size() - 1; i > 0; --i)
        std::swap(addresses[i], addresses[rng.index(i + 1)]);
    const std::uint32_t dus = rng.between(1U, 4U);
    json units = json::array();
    for (std::size_t i = 0; i < parts.size(); ++i) {
        units.push_back({{"bdm", addresses[i] / dus},
                         {"du", addresses[i] % dus},
                         {"module", parts[i].first},
                         {"unit", parts[i].second}});
    }
    return units;
}

void drop_unused_types(json& document) {
    json used = json::array();
    for (const json& type : document["module_types"]) {
        if (std::any_of(document["modules"].begin(), document["modules"].end(),
                        [&](const json& item) { return item["type"] == type["name"]; }))
            used.push_back(type);
    }
    document["module_types"] = used;
}

}  // namespace

RandomArrangement random_arrangement(Rng& rng, std::uint32_t most) {
    for (;;) {
        json document = {{"name", "random"}, {"tick_ps", 10}, {"position_size", 16}};
        document["module_types"] = {random_type("a", rng), random_type("b", rng)};
        document["modules"] = json::array();
        const std::size_t items = rng.between<std::size_t>(1, 3);
        for (std::size_t i = 0; i < items; ++i)
            document["modules"].push_back(random_item(i, rng));
        drop_unused_types(document);
        document["good_pairs"] = random_good_pairs(document["modules"], rng);
        config::Scanner scanner;
        try {
            scanner = config::scanner_from_json(document);
        } catch (const config::Error&) {
            continue;  // modules overlap, or an arc is larger than its ring
        }
        if (scanner.geometry.crystal_count() > most) continue;
        if (rng.chance(0.3)) {
            document["channel_map"]["units_per_bdm"] = rng.between(1U, 5U);
        } else if (rng.chance(0.7)) {
            document["channel_map"]["units"] = listed_units(scanner, rng);
        }
        std::uint32_t size = 1;
        while (size * size < scanner.geometry.crystals_per_du())
            ++size;
        document["position_size"] = size + rng.between(0U, 2U);
        return {config::scanner_from_json(document), document.dump()};
    }
}

gpu::CoincidenceRules random_limits(const config::Geometry& geometry, Rng& rng) {
    gpu::CoincidenceRules rules;
    if (geometry.modules_around() > 0 && rng.chance(0.5))
        rules.min_module_difference = rng.between(0U, geometry.modules_around() / 2);
    if (rng.chance(0.3)) rules.max_ring_difference = rng.between(0U, 5U);
    return rules;
}

}  // namespace petacq::test

#include "config/scanner/long_form.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/json_schema.hpp"
#include "config/base/schemas.hpp"
#include "config/scanner/arrangement.hpp"
#include "config/scanner/place_modules.hpp"

namespace petacq::config {

namespace {

using nlohmann::json;

constexpr std::uint32_t max_dus = 16;
constexpr std::uint64_t max_unit_crystals = 65'535;  ///< the position table has 16 bits for one

/// Parts of the crystals of a module: for each unit (layer, column, row) in the order of local crystals.
struct UnitCrystals {
    std::vector<CrystalAddress> crystals;  ///< `module` is not set
};

CrystalRow row_of(const json& j, const std::string& path) {
    std::vector<double> sizes = j.at("sizes_mm").get<std::vector<double>>();
    std::vector<double> gaps;
    const bool equal = !j.at("count").is_null() || !j.at("pitch_mm").is_null();
    if (equal == !sizes.empty()) {
        throw Error(path + ": expected either count and pitch_mm, or sizes_mm, found " +
                    (equal ? "both" : "neither"));
    }
    if (equal) {
        if (j.at("count").is_null()) throw Error(path + "/count: missing beside pitch_mm");
        if (j.at("pitch_mm").is_null()) throw Error(path + "/pitch_mm: missing beside count");
        const auto pitch = j.at("pitch_mm").get<double>();
        const double size = j.at("size_mm").is_null() ? pitch : j.at("size_mm").get<double>();
        if (size > pitch) {
            throw Error(path + "/size_mm: expected at most pitch_mm = " + json(pitch).dump() + ", found " +
                        json(size).dump());
        }
        sizes.assign(j.at("count").get<std::size_t>(), size);
        gaps.assign(sizes.size(), pitch - size);
    } else {
        if (!j.at("size_mm").is_null()) throw Error(path + "/size_mm: expected none beside sizes_mm");
        gaps.assign(sizes.size(), 0);
    }
    const json& added = j.at("gaps");
    std::set<std::size_t> widened;
    for (std::size_t i = 0; i < added.size(); ++i) {
        const auto after = added[i].at("after").get<std::size_t>();
        if (after >= sizes.size()) {
            throw Error(path + "/gaps/" + std::to_string(i) + "/after: expected less than the " +
                        std::to_string(sizes.size()) + " crystals, found " + std::to_string(after));
        }
        if (!widened.insert(after).second) {
            throw Error(path + "/gaps/" + std::to_string(i) + "/after: expected each place once, found " +
                        std::to_string(after) + " again");
        }
        gaps[after - 1] += added[i].at("mm").get<double>();
    }
    CrystalRow row;
    double at = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        row.centres.push_back(at + sizes[i] / 2);
        row.sizes.push_back(sizes[i]);
        at += sizes[i] + (i + 1 < sizes.size() ? gaps[i] : 0);
    }
    for (double& centre : row.centres)
        centre += j.at("shift_mm").get<double>() - at / 2;
    return row;
}

/// `crystals`: of the types before it, to which this adds its own. There are modules of each type, so all of
/// them together may have as many as a scanner.
ModuleType type_of(const json& j, const std::string& path, std::uint64_t& crystals) {
    ModuleType type;
    type.name = j.at("name").get<std::string>();
    double at = 0;
    const json& layers = j.at("layers");
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const json& l = layers[i];
        const std::string here = path + "/layers/" + std::to_string(i);
        CrystalLayer layer;
        layer.y = row_of(l.at("y"), here + "/y");
        layer.z = row_of(l.at("z"), here + "/z");
        layer.length_mm = l.at("length_mm").get<double>();
        layer.material = l.at("material").get<std::string>();
        if (!l.at("attenuation_per_cm").is_null())
            layer.attenuation_per_cm = l.at("attenuation_per_cm").get<double>();
        const auto count = l.at("count").get<std::uint32_t>();
        crystals += std::uint64_t{count} * layer.crystal_count();
        if (crystals > max_crystals) {
            throw Error(here + ": expected at most " + std::to_string(max_crystals) +
                        " crystals in one module of each type, found " + std::to_string(crystals) +
                        " up to this layer");
        }
        for (std::uint32_t k = 0; k < count; ++k) {
            at += l.at("gap_mm").get<double>();
            layer.front_mm = at;
            at += layer.length_mm;
            type.layers.push_back(layer);
        }
    }
    if (!j.at("time_resolution_ps").is_null())
        type.time_resolution_ps = j.at("time_resolution_ps").get<double>();
    if (!j.at("energy_resolution").is_null())
        type.energy_resolution = j.at("energy_resolution").get<double>();
    return type;
}

/// The first and the last of a range of `count`.
std::pair<std::uint32_t, std::uint32_t> range_of(const json& j, std::uint32_t count,
                                                 const std::string& path) {
    if (j.is_null()) return {0, count - 1};
    const auto first = j[0].get<std::uint32_t>();
    const auto last = j[1].get<std::uint32_t>();
    if (first > last || last >= count) {
        throw Error(path + ": expected a first and a last of " + std::to_string(count) + ", found " +
                    j.dump());
    }
    return {first, last};
}

/// The units of a module of this type. Each crystal is in exactly one.
std::vector<UnitCrystals> units_of(const json& j, const ModuleType& type, const std::string& path) {
    std::vector<UnitCrystals> units;
    json parts = j.at("units");
    if (parts.empty()) parts.push_back({{"layers", nullptr}, {"y", nullptr}, {"z", nullptr}});
    constexpr std::uint16_t none = 0xffff;
    std::vector<std::uint16_t> unit_of(type.crystal_count(), none);  // [crystal of the module]
    std::size_t taken = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string here = path + "/units/" + std::to_string(i);
        const auto [first, last] =
            range_of(parts[i].at("layers"), static_cast<std::uint32_t>(type.layers.size()), here + "/layers");
        std::size_t first_of_layer = 0;
        for (std::uint32_t layer = 0; layer < first; ++layer)
            first_of_layer += type.layers[layer].crystal_count();
        UnitCrystals unit;
        for (std::uint32_t layer = first; layer <= last; ++layer) {
            const CrystalLayer& l = type.layers[layer];
            const auto [first_y, last_y] = range_of(parts[i].at("y"), l.y.count(), here + "/y");
            const auto [first_z, last_z] = range_of(parts[i].at("z"), l.z.count(), here + "/z");
            const std::uint64_t crystals =
                unit.crystals.size() + std::uint64_t{last_y - first_y + 1} * (last_z - first_z + 1);
            if (crystals > max_unit_crystals) {
                throw Error(path + "/units: expected at most " + std::to_string(max_unit_crystals) +
                            " crystals in a unit, found at least " + std::to_string(crystals) + " in unit " +
                            std::to_string(i));
            }
            for (std::uint32_t y = first_y; y <= last_y; ++y) {
                for (std::uint32_t z = first_z; z <= last_z; ++z) {
                    std::uint16_t& owner = unit_of[first_of_layer + std::size_t{y} * l.z.count() + z];
                    if (owner != none) {
                        throw Error(here + ": expected crystals of its own; crystal " + std::to_string(y) +
                                    " along y and " + std::to_string(z) + " along z of layer " +
                                    std::to_string(layer) + " is in unit " + std::to_string(owner) + ", too");
                    }
                    owner = static_cast<std::uint16_t>(i);
                    unit.crystals.push_back({0, layer, y, z});
                }
            }
            first_of_layer += l.crystal_count();
        }
        taken += unit.crystals.size();
        units.push_back(std::move(unit));
    }
    if (taken != type.crystal_count()) {
        throw Error(path + "/units: expected all " + std::to_string(type.crystal_count()) +
                    " crystals of a module in its units, found " + std::to_string(taken));
    }
    return units;
}

/// A unit of a module, and the address in the frames of its hits.
struct MappedUnit {
    std::uint32_t bdm;
    std::uint32_t du;
    std::uint32_t module;
    std::uint32_t unit;
};

std::vector<MappedUnit> listed_units(const json& list, const std::vector<Module>& modules,
                                     const std::vector<std::vector<UnitCrystals>>& units) {
    std::vector<MappedUnit> mapped;
    std::set<std::pair<std::uint32_t, std::uint32_t>> addresses;
    std::set<std::pair<std::uint32_t, std::uint32_t>> parts;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::string path = "/channel_map/units/" + std::to_string(i);
        const MappedUnit m{list[i].at("bdm"), list[i].at("du"), list[i].at("module"), list[i].at("unit")};
        if (m.module >= modules.size()) {
            throw Error(path + "/module: expected less than the " + std::to_string(modules.size()) +
                        " modules, found " + std::to_string(m.module));
        }
        const std::size_t count = units[modules[m.module].type].size();
        if (m.unit >= count) {
            throw Error(path + "/unit: expected less than the " + std::to_string(count) +
                        " units of module " + std::to_string(m.module) + ", found " + std::to_string(m.unit));
        }
        if (!addresses.emplace(m.bdm, m.du).second) {
            throw Error(path + ": expected an address of its own, found BDM " + std::to_string(m.bdm) +
                        ", DU " + std::to_string(m.du) + " again");
        }
        if (!parts.emplace(m.module, m.unit).second) {
            throw Error(path + ": expected each unit once, found unit " + std::to_string(m.unit) +
                        " of module " + std::to_string(m.module) + " again");
        }
        mapped.push_back(m);
    }
    for (std::uint32_t m = 0; m < modules.size(); ++m) {
        for (std::uint32_t u = 0; u < units[modules[m].type].size(); ++u) {
            if (parts.contains({m, u})) continue;
            throw Error("/channel_map/units: expected every unit of every module; unit " + std::to_string(u) +
                        " of module " + std::to_string(m) + " is missing");
        }
    }
    return mapped;
}

std::vector<MappedUnit> map_units(const json& j, const std::vector<Module>& modules,
                                  const std::vector<std::vector<UnitCrystals>>& units) {
    const json& per_bdm = j.at("units_per_bdm");
    if (!j.at("units").empty()) {
        if (!per_bdm.is_null()) throw Error("/channel_map: expected units_per_bdm or units, found both");
        return listed_units(j.at("units"), modules, units);
    }
    std::vector<MappedUnit> mapped;
    for (std::uint32_t m = 0; m < modules.size(); ++m) {
        const auto count = static_cast<std::uint32_t>(units[modules[m].type].size());
        if (per_bdm.is_null() && count > max_dus) {
            throw Error("/channel_map: expected units_per_bdm or units, since module " + std::to_string(m) +
                        " has " + std::to_string(count) + " units, and a BDM at most " +
                        std::to_string(max_dus));
        }
        for (std::uint32_t u = 0; u < count; ++u) {
            const auto index = static_cast<std::uint32_t>(mapped.size());
            mapped.push_back(per_bdm.is_null() ? MappedUnit{m, u, m, u}
                                               : MappedUnit{index / per_bdm.get<std::uint32_t>(),
                                                            index % per_bdm.get<std::uint32_t>(), m, u});
        }
    }
    return mapped;
}

std::shared_ptr<const ChannelMap> channel_map_of(const std::vector<MappedUnit>& mapped,
                                                 const std::vector<std::vector<UnitCrystals>>& units,
                                                 const Arrangement& arrangement, FrameVersion version,
                                                 Geometry& geometry) {
    for (const MappedUnit& m : mapped) {
        geometry.bdm_count = std::max(geometry.bdm_count, m.bdm + 1);
        geometry.du_count = std::max(geometry.du_count, m.du + 1);
    }
    if (geometry.bdm_count > max_bdm_count(version)) {
        throw Error("/channel_map: expected numbers of BDMs below " + std::to_string(max_bdm_count(version)) +
                    " with frame_version " + std::to_string(static_cast<int>(version)) + ", found " +
                    std::to_string(geometry.bdm_count - 1));
    }
    std::vector<const MappedUnit*> by_address(geometry.unit_count());
    for (const MappedUnit& m : mapped)
        by_address[m.bdm * geometry.du_count + m.du] = &m;
    auto map = std::make_shared<ChannelMap>();
    for (const MappedUnit* const m : by_address) {
        map->first.push_back(static_cast<std::uint32_t>(map->crystals.size()));
        if (m == nullptr) continue;
        const auto& crystals = units[arrangement.modules()[m->module].type][m->unit].crystals;
        for (CrystalAddress address : crystals) {
            address.module = m->module;
            map->crystals.push_back(arrangement.crystal(address));
        }
        map->max_crystals_per_du =
            std::max(map->max_crystals_per_du, static_cast<std::uint32_t>(crystals.size()));
    }
    map->first.push_back(static_cast<std::uint32_t>(map->crystals.size()));
    return map;
}

/// A type without modules is a mistake in the modules: they name another.
void check_types_used(const std::vector<ModuleType>& types, const std::vector<Module>& modules) {
    for (std::size_t i = 0; i < types.size(); ++i) {
        if (std::any_of(modules.begin(), modules.end(), [&](const Module& m) { return m.type == i; }))
            continue;
        throw Error("/module_types/" + std::to_string(i) +
                    ": expected a type that an item of /modules names, found " +
                    json(types[i].name).dump(-1, ' ', false, json::error_handler_t::replace) +
                    ", which none does");
    }
}

/// The tables have room for as many crystals in each unit as the largest has.
void check_tables(const Geometry& g) {
    if (const std::uint64_t slots = std::uint64_t{g.unit_count()} * g.crystals_per_du();
        slots > max_crystals) {
        throw Error("/channel_map: expected at most " + std::to_string(max_crystals) +
                    " places for crystals (BDMs * DUs of a BDM * crystals of a unit), found " +
                    std::to_string(slots));
    }
    const std::uint64_t positions = std::uint64_t{g.unit_count()} * g.position_size * g.position_size;
    if (positions > max_positions) {
        throw Error("/position_size: expected at most " + std::to_string(max_positions) +
                    " positions in all units (BDMs * DUs of a BDM * position_size squared), found " +
                    std::to_string(positions));
    }
}

std::uint32_t micrometres(const json& mm, double part = 1) {
    return static_cast<std::uint32_t>(std::lround(mm.get<double>() * part * 1000));
}

std::optional<FieldOfView> field_of_view_of(const json& j) {
    const json& cylinder = j.at("cylinder");
    const json& box = j.at("box");
    if (!cylinder.is_null() && !box.is_null())
        throw Error("/good_pairs: expected a cylinder or a box, found both");
    if (!cylinder.is_null()) {
        return FieldOfView{micrometres(cylinder.at("radius_mm")), 0,
                           micrometres(cylinder.at("length_mm"), 0.5)};
    }
    if (!box.is_null()) {
        return FieldOfView{micrometres(box.at("x_mm"), 0.5), micrometres(box.at("y_mm"), 0.5),
                           micrometres(box.at("z_mm"), 0.5)};
    }
    return std::nullopt;
}

/// Modules that pair with the same others: of the same name, the same place around the ring, the same
/// direction.
struct GroupKey {
    std::string name;
    std::uint32_t around = 0;
    std::uint32_t around_of = 0;
    std::optional<std::int64_t> angle_millionths;       ///< none: its modules face along the axis
    auto operator<=>(const GroupKey&) const = default;  // NOLINT(modernize-use-nullptr): none is there
};

GroupKey key_of(const Module& m, bool with_angle) {
    GroupKey key;
    key.name = m.name;
    if (m.around) {
        key.around = m.around->index;
        key.around_of = m.around->count;
    }
    // Less than this across the axis is what rounding leaves of none.
    constexpr double least_across = 1e-6;
    if (with_angle && std::hypot(m.outward[0], m.outward[1]) >= least_across) {
        const double turn = std::atan2(m.outward[1], m.outward[0]) / (2 * std::numbers::pi);
        const std::int64_t millionths = std::llround(turn * 360e6);
        key.angle_millionths = (millionths + 360'000'000) % 360'000'000;
    }
    return key;
}

/// Pairs of names in both orders; empty: all.
std::set<std::pair<std::string, std::string>> named_pairs(const json& between,
                                                          const std::vector<Module>& modules) {
    std::set<std::string> groups;
    for (const Module& m : modules)
        groups.insert(m.name);
    std::set<std::pair<std::string, std::string>> pairs;
    for (std::size_t i = 0; i < between.size(); ++i) {
        const std::string path = "/good_pairs/between/" + std::to_string(i);
        const auto found = [](const json& j) {
            return j.dump(-1, ' ', false, json::error_handler_t::replace);
        };
        for (std::size_t k = 0; k < 2; ++k) {
            if (groups.contains(between[i][k].get<std::string>())) continue;
            throw Error(path + '/' + std::to_string(k) + ": expected the group of some modules, found " +
                        found(between[i][k]));
        }
        if (!pairs.emplace(between[i][0], between[i][1]).second) {
            throw Error(path + ": expected each pair of groups once, in one order, found " +
                        found(between[i]) + " again");
        }
        pairs.emplace(between[i][1], between[i][0]);
    }
    return pairs;
}

/// In millionths of a degree. 0 if one has no direction around the axis, so that no least angle is met.
std::int64_t angle_between(const GroupKey& a, const GroupKey& b) {
    if (!a.angle_millionths || !b.angle_millionths) return 0;
    const std::int64_t straight = std::abs(*a.angle_millionths - *b.angle_millionths);
    return std::min(straight, 360'000'000 - straight);
}

std::shared_ptr<const PairGeometry> pairs_of(const json& j, const Arrangement& arrangement) {
    auto pairs = std::make_shared<PairGeometry>();
    const std::vector<Module>& modules = arrangement.modules();
    const auto min_angle = j.at("min_angle_deg").get<double>();
    const auto names = named_pairs(j.at("between"), modules);
    std::map<GroupKey, std::uint32_t> groups;
    std::vector<std::uint32_t> group_of;
    std::vector<GroupKey> keys;
    for (const Module& m : modules) {
        const auto [group, fresh] =
            groups.emplace(key_of(m, min_angle > 0), static_cast<std::uint32_t>(groups.size()));
        if (fresh) {
            keys.push_back(group->first);
            pairs->groups.push_back({group->first.around, group->first.around_of});
        }
        group_of.push_back(group->second);
    }
    if (keys.size() > PairGeometry::max_groups) {
        throw Error("/modules: expected at most " + std::to_string(PairGeometry::max_groups) +
                    " kinds of modules that differ in group, place around the ring" +
                    (min_angle > 0 ? ", or direction around the axis" : "") + ", found " +
                    std::to_string(keys.size()) + "; panel and place give modules no place around a ring" +
                    (min_angle > 0 ? ", and without good_pairs.min_angle_deg directions do not count" : ""));
    }
    pairs->may_pair.resize(keys.size() * keys.size());
    std::int64_t largest = 0;  // angle between modules whose names may pair, millionths of a degree
    for (std::size_t a = 0; a < keys.size(); ++a) {
        for (std::size_t b = 0; b < keys.size(); ++b) {
            const std::int64_t apart = angle_between(keys[a], keys[b]);
            const bool by_name = names.empty() || names.contains({keys[a].name, keys[b].name});
            if (by_name) largest = std::max(largest, apart);
            pairs->may_pair[a * keys.size() + b] = by_name && apart >= std::llround(min_angle * 1e6);
        }
    }
    if (largest < std::llround(min_angle * 1e6)) {
        throw Error(
            "/good_pairs/min_angle_deg: expected at most " + json(static_cast<double>(largest) / 1e6).dump() +
            ", the largest angle between two modules that may pair, found " + j.at("min_angle_deg").dump());
    }
    if (!j.at("max_z_difference_mm").is_null())
        pairs->max_z_difference_um = micrometres(j.at("max_z_difference_mm"));
    pairs->field_of_view = field_of_view_of(j);

    std::vector<std::int32_t> heights;
    for (std::uint32_t i = 0; i < arrangement.crystal_count(); ++i) {
        const CrystalPlace place = arrangement.place(i);
        const auto um = [&](std::size_t axis) {
            const double mm = place.front_centre_mm[axis];
            if (std::abs(mm) > PairGeometry::max_position_mm)
                throw Error("/modules: expected crystals within 200 m of the middle of the scanner");
            return static_cast<std::int32_t>(std::lround(mm * 1000));
        };
        pairs->crystals.push_back({group_of[arrangement.address(i).module], 0, um(0), um(1), um(2)});
        heights.push_back(um(2));
    }
    // Rounding may part crystals of one ring by a micrometre.
    std::sort(heights.begin(), heights.end());
    std::vector<std::int32_t> rings;
    for (const std::int32_t z : heights)
        if (rings.empty() || z > rings.back() + 1) rings.push_back(z);
    for (PairGeometry::Crystal& crystal : pairs->crystals) {
        crystal.ring = static_cast<std::uint32_t>(std::upper_bound(rings.begin(), rings.end(), crystal.z_um) -
                                                  rings.begin() - 1);
    }
    return pairs;
}

std::optional<Rotation> rotation_of(const json& j) {
    if (j.is_null()) return std::nullopt;
    const auto counts = j.at("counts_per_turn").get<double>();
    if (counts == 0) throw Error("/rotation/counts_per_turn: expected a number other than 0");
    return Rotation{j.at("tag_channel").get<std::uint8_t>(), counts, j.at("count_at_zero").get<double>()};
}

}  // namespace

bool is_long_form(const json& document) {
    return document.is_object() && (document.contains("modules") || document.contains("module_types"));
}

Scanner scanner_of_long_form(json& document) {
    static const json schema = json::parse(arrangement_schema_text());
    apply_schema(schema, document);

    Scanner scanner;
    scanner.name = document.at("name").get<std::string>();
    scanner.tick_ps = document.at("tick_ps").get<double>();
    scanner.frame_version = static_cast<FrameVersion>(document.at("frame_version").get<int>());
    scanner.geometry.position_size = document.at("position_size").get<std::uint32_t>();

    std::vector<ModuleType> types;
    std::vector<std::vector<UnitCrystals>> units;  // [type]
    const json& described = document.at("module_types");
    std::uint64_t crystals = 0;
    for (std::size_t i = 0; i < described.size(); ++i) {
        const std::string path = "/module_types/" + std::to_string(i);
        types.push_back(type_of(described[i], path, crystals));
        const std::string& name = types.back().name;
        if (std::count_if(types.begin(), types.end(), [&](const auto& t) { return t.name == name; }) > 1)
            throw Error(path + "/name: expected a name of its own, found that of an earlier type again");
    }
    std::vector<Module> modules = place_modules(document.at("modules"), types);
    check_types_used(types, modules);
    for (std::size_t i = 0; i < described.size(); ++i)
        units.push_back(units_of(described[i], types[i], "/module_types/" + std::to_string(i)));
    const auto arrangement = std::make_shared<const Arrangement>(std::move(types), std::move(modules));
    const std::vector<MappedUnit> mapped =
        map_units(document.at("channel_map"), arrangement->modules(), units);
    scanner.geometry.channel_map =
        channel_map_of(mapped, units, *arrangement, scanner.frame_version, scanner.geometry);
    const std::uint32_t positions = scanner.geometry.position_size * scanner.geometry.position_size;
    check_tables(scanner.geometry);
    if (positions < scanner.geometry.crystals_per_du()) {
        throw Error("/position_size: expected position_size squared of at least the crystals of a unit = " +
                    std::to_string(scanner.geometry.crystals_per_du()) + ", found " +
                    std::to_string(scanner.geometry.position_size));
    }
    scanner.geometry.pairs = pairs_of(document.at("good_pairs"), *arrangement);
    scanner.arrangement = arrangement;
    scanner.rotation = rotation_of(document.at("rotation"));
    return scanner;
}

}  // namespace petacq::config

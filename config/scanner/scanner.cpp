#include "config/scanner/scanner.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <utility>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "config/base/json_schema.hpp"
#include "config/base/schemas.hpp"
#include "config/scanner/existing_modules.hpp"
#include "config/scanner/long_form.hpp"

namespace petacq::config {

using nlohmann::json;

// The keys of each section.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Counts3, x, y, z)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Geometry, channels, modules, blocks, crystals, bdm_count, du_count,
                                   position_size)
// The usual material is not written: a scanner has the same text whether its description names this material
// or none.
void to_json(json& j, const Dimensions& d) {
    j = {{"ring_radius_mm", d.ring_radius_mm},         {"crystal_pitch_y_mm", d.crystal_pitch_y_mm},
         {"crystal_pitch_z_mm", d.crystal_pitch_z_mm}, {"crystal_length_mm", d.crystal_length_mm},
         {"block_gap_y_mm", d.block_gap_y_mm},         {"block_gap_z_mm", d.block_gap_z_mm},
         {"module_gap_z_mm", d.module_gap_z_mm}};
    if (d.crystal_material != Dimensions().crystal_material) j["crystal_material"] = d.crystal_material;
    if (d.crystal_attenuation_per_cm) j["crystal_attenuation_per_cm"] = *d.crystal_attenuation_per_cm;
}
void from_json(const json& j, Dimensions& d) {
    j.at("ring_radius_mm").get_to(d.ring_radius_mm);
    j.at("crystal_pitch_y_mm").get_to(d.crystal_pitch_y_mm);
    j.at("crystal_pitch_z_mm").get_to(d.crystal_pitch_z_mm);
    j.at("crystal_length_mm").get_to(d.crystal_length_mm);
    j.at("block_gap_y_mm").get_to(d.block_gap_y_mm);
    j.at("block_gap_z_mm").get_to(d.block_gap_z_mm);
    j.at("module_gap_z_mm").get_to(d.module_gap_z_mm);
    j.at("crystal_material").get_to(d.crystal_material);
    const json& attenuation = j.at("crystal_attenuation_per_cm");
    if (!attenuation.is_null()) d.crystal_attenuation_per_cm = attenuation.get<double>();
}
// A source is written with the keys that apply to it only.
void to_json(json& j, const Source& s) {
    j = {{"bdms", s.bdms}};
    if (s.id) j["id"] = *s.id;
    if (!s.address.empty()) j["address"] = s.address;
    if (s.port != 0) j["port"] = s.port;
}
void from_json(const json& j, Source& s) {
    j.at("bdms").get_to(s.bdms);
    if (!j.at("id").is_null()) s.id = j.at("id").get<std::uint16_t>();
    if (!j.at("address").is_null()) j.at("address").get_to(s.address);
    if (!j.at("port").is_null()) j.at("port").get_to(s.port);
}

// The short form.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Scanner, name, frame_version, geometry, tick_ps, dimensions, sources)

namespace {

void check_most(const std::string& path, std::uint64_t most, std::uint64_t found) {
    if (found > most) {
        throw Error(path + ": expected an integer from 1 to " + std::to_string(most) + ", found " +
                    std::to_string(found));
    }
}

void check_product(const char* path, const char* rule, std::uint64_t expected, std::uint64_t found) {
    if (expected != found) {
        throw Error(std::string(path) + ": expected " + rule + " = " + std::to_string(expected) + ", found " +
                    std::to_string(found));
    }
}

// The most crystals of a unit, so that an entry of the position table can name each: one byte in version 1,
// two in version 2, whose highest value is left for positions outside.
constexpr std::uint32_t max_crystals_per_du(FrameVersion version) {
    return version == FrameVersion::one ? 256 : 65'535;
}
// The schema bounds each number for the version with the wider frames; these checks relate the numbers to the
// version and to each other. Within the bounds no product of 64 bits overflows.
void check_geometry(const Geometry& g, FrameVersion version) {
    const std::uint32_t max_modules = max_bdm_count(version);
    check_most("/geometry/channels", max_modules, g.channels);
    check_most("/geometry/modules/y", max_modules, g.modules.y);
    check_most("/geometry/modules/z", max_modules, g.modules.z);
    check_most("/geometry/crystals/y", max_crystals_per_du(version), g.crystals.y);
    check_most("/geometry/crystals/z", max_crystals_per_du(version), g.crystals.z);
    check_most("/geometry/bdm_count", max_modules, g.bdm_count);
    check_product("/geometry/bdm_count", "channels * modules.y * modules.z",
                  std::uint64_t{g.channels} * g.modules.y * g.modules.z, g.bdm_count);
    check_product("/geometry/du_count", "blocks.y * blocks.z", g.blocks.y * g.blocks.z, g.du_count);
    if (g.crystals_per_du() > max_crystals_per_du(version)) {
        throw Error("/geometry/crystals: expected crystals.y * crystals.z of at most " +
                    std::to_string(max_crystals_per_du(version)) + ", found " +
                    std::to_string(g.crystals_per_du()));
    }
    const std::uint64_t units = std::uint64_t{g.bdm_count} * g.du_count;
    if (const std::uint64_t crystals = units * g.crystals_per_du(); crystals > max_crystals) {
        throw Error("/geometry: expected at most " + std::to_string(max_crystals) +
                    " crystals in all, found " + std::to_string(crystals));
    }
    if (const std::uint64_t positions = units * g.position_size * g.position_size;
        positions > max_positions) {
        throw Error("/geometry/position_size: expected at most " + std::to_string(max_positions) +
                    " positions in all units (bdm_count * du_count * position_size squared), found " +
                    std::to_string(positions));
    }
    // Each crystal needs a position of its own.
    if (g.position_size * g.position_size < g.crystals_per_du()) {
        throw Error(
            "/geometry/position_size: expected position_size squared of at least crystals.y * crystals.z = " +
            std::to_string(g.crystals_per_du()) + ", found " + std::to_string(g.position_size));
    }
}

void check_dimensions(const Scanner& s) {
    const Geometry& g = s.geometry;
    const Dimensions& d = s.dimensions;
    const std::uint32_t n = g.modules_in_ring();
    if (n < 3) return;  // one head, or two that face each other: no polygon that they must fit
    const double width =
        g.crystals_per_module_y() * d.crystal_pitch_y_mm + (g.blocks.y - 1) * d.block_gap_y_mm;
    const double room = 2 * d.ring_radius_mm * std::tan(std::numbers::pi / n);
    if (width > room * (1 + 1e-9)) {  // a description may fill the polygon to the last digit
        const double radius = width / (2 * std::tan(std::numbers::pi / n));
        throw Error("/dimensions/ring_radius_mm: modules " + json(width).dump() +
                    " mm wide overlap in a polygon of " + std::to_string(n) + " with sides of " +
                    json(room).dump() + " mm; expected a radius of at least " + json(radius).dump() +
                    " mm, found " + json(d.ring_radius_mm).dump());
    }
}

void check_kind(const Source& s, bool with_id, const std::string& path) {
    const bool has_id = s.id.has_value();
    const bool has_sender = !s.address.empty() && s.port != 0;
    if (!has_id && !has_sender) {
        throw Error(path + ": expected an id (sequenced framing), or an address and a port (bare framing)");
    }
    if (has_id && s.port != 0) {
        throw Error(path + "/port: expected none together with an id, found " + std::to_string(s.port));
    }
    if (has_id != with_id) {
        throw Error(path + ": expected " + (with_id ? "an id" : "an address and a port, and no id") +
                    ", as in /sources/0");
    }
}

void check_sources(const std::vector<Source>& sources, const Geometry& g) {
    if (sources.empty()) return;
    std::map<std::uint16_t, std::size_t> ids;
    std::map<std::pair<std::string, std::uint16_t>, std::size_t> senders;
    const std::vector<std::uint32_t> modules = existing_modules(g);
    std::vector<bool> carried(g.bdm_count);
    for (std::size_t i = 0; i < sources.size(); ++i) {
        const Source& s = sources[i];
        const std::string path = "/sources/" + std::to_string(i);
        check_kind(s, sources.front().id.has_value(), path);
        if (s.id) {
            if (const auto [other, fresh] = ids.emplace(*s.id, i); !fresh) {
                throw Error(path + "/id: expected an id of its own, found " + std::to_string(*s.id) +
                            " as in /sources/" + std::to_string(other->second));
            }
        } else if (const auto [other, fresh] = senders.emplace(std::pair(s.address, s.port), i); !fresh) {
            throw Error(path + ": expected an address and port of its own, found " + s.address + ':' +
                        std::to_string(s.port) + " as in /sources/" + std::to_string(other->second));
        }
        for (std::size_t k = 0; k < s.bdms.size(); ++k) {
            if (s.bdms[k] >= g.bdm_count || !g.module_exists(s.bdms[k])) {
                throw Error(path + "/bdms/" + std::to_string(k) + ": expected one of the " +
                            std::to_string(modules.size()) + " BDMs that have units, from " +
                            std::to_string(modules.front()) + " to " + std::to_string(modules.back()) +
                            ", found " + std::to_string(s.bdms[k]));
            }
            carried[s.bdms[k]] = true;
        }
    }
    for (const std::uint32_t bdm : modules) {
        if (carried[bdm]) continue;
        throw Error("/sources: expected each of the " + std::to_string(modules.size()) +
                    " BDMs that have units in the bdms of a source; BDM " + std::to_string(bdm) +
                    " is in none");
    }
}

const json& scanner_schema() {
    static const json schema = json::parse(scanner_schema_text());
    return schema;
}

}  // namespace

Scanner scanner_from_json(const json& document) {
    json full = document;
    if (is_long_form(document)) {
        Scanner s = scanner_of_long_form(full);
        full.at("sources").get_to(s.sources);
        check_sources(s.sources, s.geometry);
        s.long_form = std::make_shared<const json>(std::move(full));
        return s;
    }
    apply_schema(scanner_schema(), full);

    auto s = full.get<Scanner>();
    check_geometry(s.geometry, s.frame_version);
    check_dimensions(s);
    check_sources(s.sources, s.geometry);
    return s;
}

Scanner load_scanner(const std::filesystem::path& file) {
    const json document = read_json_file(file);
    return naming_file(file, [&] { return scanner_from_json(document); });
}

json to_json(const Scanner& scanner) {
    json document;
    if (scanner.long_form) {
        document = *scanner.long_form;
    } else {
        to_json(document, scanner);
    }
    if (scanner.sources.empty()) document.erase("sources");
    if (scanner.frame_version == FrameVersion::one) document.erase("frame_version");
    if (!scanner.rotation) document.erase("rotation");
    return document;
}

std::uint64_t ticks_of(double seconds, const Scanner& scanner) {
    const double ticks = std::round(seconds * 1e12 / scanner.tick_ps);
    return ticks >= 0x1p63 ? std::uint64_t{1} << 63 : static_cast<std::uint64_t>(ticks);
}

}  // namespace petacq::config

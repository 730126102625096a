// Scanner descriptions of the long form: where the crystals are, their numbers, and their channels.
#include "config/scanner/arrangement.hpp"

#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "config/base/schemas.hpp"
#include "config/scanner/depth_of_interaction.hpp"
#include "config/scanner/long_form.hpp"
#include "tests/fuzz/base/json_target.hpp"
#include "tools/normalisation/pair_classes.hpp"

using namespace petacq;
using config::Vector3;
using fuzz::require;
using nlohmann::json;

std::string_view fuzz::schema_of_target() {
    return config::arrangement_schema_text();
}

namespace {

double dot(const Vector3& a, const Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

double count_in(const json& object, const char* key) {
    return object.at(key).is_number() ? object.at(key).get<double>() : 1;
}

/// The number of modules that an item of /modules describes. A count that is no number is taken as 1.
double modules_in(const json& item) {
    double modules = item.contains("along_z") ? item["along_z"].value("count", 1.0) : 1;
    for (const char* const placement : {"ring", "arc", "panel", "polygon", "box"}) {
        if (!item.contains(placement) || !item[placement].is_object()) continue;
        for (const char* const key : {"count", "sides", "per_side"})
            if (item[placement].contains(key)) modules *= count_in(item[placement], key);
    }
    return modules;
}

double crystals_in(const json& row) {
    const double sizes = row.contains("sizes_mm") ? static_cast<double>(row["sizes_mm"].size()) : 0;
    return std::max(sizes, row.value("count", 1.0));
}

/// Whether a description that is accepted would take seconds: libFuzzer learns nothing from it. Those beyond
/// the limits are refused at once.
bool is_large(const json& document) {
    try {
        double modules = 0;
        for (const json& item : document.at("modules"))
            modules += modules_in(item);
        double crystals = 0;
        for (const json& type : document.at("module_types"))
            for (const json& layer : type.at("layers"))
                crystals +=
                    crystals_in(layer.at("y")) * crystals_in(layer.at("z")) * layer.value("count", 1.0);
        return (modules > 2000 && modules <= 65536) ||
               (modules * crystals > 10'000 && modules * crystals <= 2.0 * config::max_crystals * 256);
    } catch (const json::exception&) {
        return false;  // refused
    }
}

void check_places(const config::Arrangement& arrangement) {
    for (const config::Module& m : arrangement.modules()) {
        for (const Vector3& axis : {m.outward, m.along_y, m.along_z})
            require(std::abs(dot(axis, axis) - 1) < 1e-9, "axes of a module are unit vectors");
        require(std::abs(dot(m.outward, m.along_y)) < 1e-9 && std::abs(dot(m.outward, m.along_z)) < 1e-9 &&
                    std::abs(dot(m.along_y, m.along_z)) < 1e-9,
                "axes of a module are at right angles");
    }
    for (std::uint32_t crystal = 0; crystal < arrangement.crystal_count(); ++crystal) {
        require(arrangement.crystal(arrangement.address(crystal)) == crystal, "an address and a number");
        const config::CrystalPlace place = arrangement.place(crystal);
        for (const double mm : place.front_centre_mm)
            require(std::abs(mm) <= config::PairGeometry::max_position_mm, "within 200 m");
        require(arrangement.layer_of(crystal).length_mm > 0, "a crystal has a length");
    }
}

/// The slow way: the middle of no crystal lies in a layer of another module.
void check_apart(const config::Arrangement& arrangement) {
    constexpr double touching_mm = 2e-3;
    const std::uint32_t step = 1 + arrangement.crystal_count() / 300;
    for (std::uint32_t crystal = 0; crystal < arrangement.crystal_count(); crystal += step) {
        const std::uint32_t own = arrangement.address(crystal).module;
        const Vector3 at =
            config::point_at_depth(arrangement.place(crystal), arrangement.layer_of(crystal).length_mm / 2);
        for (std::uint32_t i = 0; i < arrangement.modules().size(); ++i) {
            if (i == own) continue;
            const config::Module& m = arrangement.modules()[i];
            const Vector3 from{at[0] - m.front_mm[0], at[1] - m.front_mm[1], at[2] - m.front_mm[2]};
            for (const config::CrystalLayer& layer : arrangement.type_of(m).layers) {
                const double inside =
                    std::min({dot(from, m.outward) - layer.front_mm,
                              layer.front_mm + layer.length_mm - dot(from, m.outward),
                              dot(from, m.along_y) - layer.y.low(), layer.y.high() - dot(from, m.along_y),
                              dot(from, m.along_z) - layer.z.low(), layer.z.high() - dot(from, m.along_z)});
                require(inside < touching_mm, "modules do not overlap");
            }
        }
    }
}

void check_channels(const config::Geometry& g) {
    std::vector<bool> seen(g.crystal_count());
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm) {
        for (std::uint32_t du = 0; du < g.du_count; ++du) {
            const std::uint32_t count = g.crystals_of_unit(bdm * g.du_count + du);
            require(count <= g.crystals_per_du(), "no unit has more crystals than tables hold");
            for (std::uint32_t local = 0; local < count; ++local) {
                const std::uint32_t crystal = g.crystal(bdm, du, local);
                require(crystal < seen.size() && !seen[crystal], "a crystal is in one unit");
                seen[crystal] = true;
            }
        }
    }
    require(std::find(seen.begin(), seen.end(), false) == seen.end(), "every crystal is in a unit");
}

void check_pairs(const config::Geometry& g) {
    const config::PairGeometry& pairs = *g.pairs;
    const std::size_t groups = pairs.groups.size();
    require(pairs.crystals.size() == g.crystal_count(), "every crystal has a place");
    require(groups <= config::PairGeometry::max_groups && pairs.may_pair.size() == groups * groups,
            "a rule for each two groups");
    bool any = false;
    for (std::size_t a = 0; a < groups; ++a) {
        for (std::size_t b = 0; b < groups; ++b) {
            require(pairs.may_pair[a * groups + b] == pairs.may_pair[b * groups + a],
                    "good pairs do not depend on the order");
            any = any || pairs.may_pair[a * groups + b] != 0;
        }
    }
    require(any, "some modules may pair");
    std::map<std::uint32_t, std::pair<std::int32_t, std::int32_t>> rings;  // lowest and highest of each
    for (const config::PairGeometry::Crystal& crystal : pairs.crystals) {
        require(crystal.group < groups, "the group of a crystal");
        const auto [ring, fresh] = rings.try_emplace(crystal.ring, crystal.z_um, crystal.z_um);
        ring->second.first = std::min(ring->second.first, crystal.z_um);
        ring->second.second = std::max(ring->second.second, crystal.z_um);
    }
    require(rings.rbegin()->first == rings.size() - 1, "rings have no gaps between their numbers");
    for (auto ring = std::next(rings.begin()); ring != rings.end(); ++ring)
        require(std::prev(ring)->second.second < ring->second.first, "rings rise along the axis");
}

void check_rotation(const config::Rotation& rotation) {
    for (const std::int32_t count : {INT32_MIN, -1, 0, 1, 3600, INT32_MAX}) {
        const double angle = rotation.angle(count);
        require(angle >= 0 && angle < 2 * std::numbers::pi, "an angle from 0 to less than a whole turn");
    }
}

/// What `petcal derive normalisation` makes of it.
void check_classes(const config::Arrangement& arrangement) {
    const auto found = normalisation::classes_of(arrangement);
    if (!found) return;
    const std::uint32_t crystals = arrangement.crystal_count();
    const std::uint32_t step = 1 + crystals / 40;
    for (std::uint32_t a = 0; a < crystals; a += step) {
        for (std::uint32_t b = 0; b < crystals; b += step) {
            const auto there = found->classes.entries(a, b);
            const auto back = found->classes.entries(b, a);
            require(there.transaxial < found->classes.transaxial_count() &&
                        there.axial < found->classes.axial_count(),
                    "a pair has factors");
            require(found->same_transaxial[there.transaxial] == found->same_transaxial[back.transaxial] &&
                        found->same_axial[there.axial] == found->same_axial[back.axial],
                    "the factors of a pair do not depend on its order");
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    json document;
    try {
        document = config::parse_json(fuzz::text_of(data, size));
    } catch (const config::Error&) {
        return -1;
    }
    if (!config::is_long_form(document) || is_large(document)) return -1;
    const fuzz::MemoryBound bound((std::size_t{192} << 20) + 2000 * size);
    try {
        const config::Scanner scanner = config::scanner_from_json(document);
        fuzz::accept();
        const config::Arrangement& arrangement = *scanner.arrangement;
        require(arrangement.crystal_count() == scanner.geometry.crystal_count(), "crystals are counted once");
        check_places(arrangement);
        check_apart(arrangement);
        check_channels(scanner.geometry);
        check_pairs(scanner.geometry);
        if (scanner.rotation) check_rotation(*scanner.rotation);
        if (arrangement.modules().size() <= 40 && arrangement.crystal_count() <= 2000)
            check_classes(arrangement);
        const double depth = config::DepthOfInteraction::of(scanner, std::nullopt).typical_mm();
        require(std::isfinite(depth) && depth >= 0, "photons interact at some depth");

        const json written = config::to_json(scanner);
        const config::Scanner again = config::scanner_from_json(written);
        require(config::to_json(again) == written, "a description that is written out reads back the same");
        for (std::uint32_t crystal = 0; crystal < arrangement.crystal_count(); ++crystal)
            require(again.arrangement->place(crystal).front_centre_mm ==
                        arrangement.place(crystal).front_centre_mm,
                    "and has its crystals in the same places");
    } catch (const config::Error& error) {
        require(fuzz::says_what_was_expected(error.what()), "an error says what was expected");
    }
    return 0;
}

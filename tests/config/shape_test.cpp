// How large scanners are, and their crystals on a plane.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "config/shape/extent.hpp"
#include "config/shape/unrolled_map.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

namespace {

/// Two rings, and the examples of the long form, but for the largest.
config::Scanner example_of(const std::string& name) {
    return config::load_scanner(example("scanners/" + name + ".scanner.json"));
}

std::vector<config::Scanner> scanners() {
    constexpr std::uintmax_t largest = 30'000;  // bytes of a description
    std::vector<config::Scanner> all{tiny_scanner(), config::load_scanner(example("small.scanner.json"))};
    for (const auto& entry : std::filesystem::directory_iterator(example("scanners"))) {
        if (entry.path().string().ends_with(".scanner.json") && entry.file_size() < largest)
            all.push_back(config::load_scanner(entry.path()));
    }
    return all;
}

bool covers(const config::MapRectangle& a, const config::MapRectangle& b) {
    constexpr double touching = 1e-6;
    return a.left < b.right - touching && b.left < a.right - touching && a.bottom < b.top - touching &&
           b.bottom < a.top - touching;
}

}  // namespace

TEST_CASE("shape: the extent is that of the crystals") {
    const auto box = config::extent_of(example_of("box"));
    CHECK(box.bore_radius_mm == Approx(std::hypot(28, 0.2)));  // the modules of a panel are 0.4 mm apart
    CHECK(box.transaxial_pitch_mm == Approx(1.5));
    CHECK(box.axial_pitch_mm == Approx(1.5));
    // Panels of two modules of 24 mm, 24.4 mm apart, at 30 and 28 mm.
    CHECK(box.front_radius_mm == Approx(std::hypot(30, 12.2 + 11.25)));
    CHECK(box.outer_radius_mm == Approx(std::hypot(40, 12.2 + 11.25)));
    const auto phoswich = config::extent_of(example_of("phoswich"));
    CHECK(phoswich.bore_radius_mm == Approx(32));
    CHECK(phoswich.outer_radius_mm == Approx(std::hypot(32 + 14, 3.5 * 1.6)));
    const auto tiny = config::extent_of(tiny_scanner());
    CHECK(tiny.bore_radius_mm == 20);
    CHECK(tiny.front_radius_mm == 20);
    CHECK(tiny.outer_radius_mm == 30);
    CHECK(tiny.transaxial_pitch_mm == 1.5);
    CHECK(tiny.axial_pitch_mm == 1.6);
    for (const config::Scanner& s : scanners()) {
        INFO(s.name);
        const config::Extent e = config::extent_of(s);
        CHECK(e.bore_radius_mm > 0);
        CHECK(e.front_radius_mm >= e.bore_radius_mm);
        CHECK(e.outer_radius_mm > e.front_radius_mm);
        for (std::uint32_t i = 0; i < s.geometry.crystal_count(); i += 7) {
            const auto at = config::crystal_place(s, i).front_centre_mm;
            if (!s.is_ring()) REQUIRE(std::hypot(at[0], at[1]) <= e.front_radius_mm + 1e-9);
            REQUIRE(std::hypot(at[0], at[1]) >= e.bore_radius_mm - 1e-9);
        }
    }
}

TEST_CASE("shape: on the map no crystal covers another, and each has its size") {
    for (const config::Scanner& s : scanners()) {
        INFO(s.name);
        const auto arrangement = config::arrangement_of(s);
        const config::UnrolledMap map(arrangement);
        std::vector<config::MapRectangle> modules;
        for (std::uint32_t m = 0; m < arrangement->modules().size(); ++m) {
            modules.push_back(map.module(m));
            CHECK(modules.back().left > -1e-6);
            CHECK(modules.back().bottom > -1e-6);
            CHECK(modules.back().right < map.width_mm() + 1e-6);
            CHECK(modules.back().top < map.height_mm() + 1e-6);
            for (std::uint32_t n = 0; n < m; ++n)
                if (covers(modules[m], modules[n])) FAIL("module " << m << " covers module " << n);
        }
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<config::MapRectangle>> drawn;
        for (std::uint32_t i = 0; i < s.geometry.crystal_count(); ++i) {
            const config::CrystalAddress a = arrangement->address(i);
            const config::MapRectangle r = map.crystal(a);
            const config::MapRectangle& m = modules[a.module];
            const config::CrystalLayer& layer = arrangement->layer_of(i);
            const bool inside = r.left > m.left - 1e-6 && r.right < m.right + 1e-6 &&
                                r.bottom > m.bottom - 1e-6 && r.top < m.top + 1e-6;
            if (!inside) FAIL("crystal " << i << " outside its module");
            REQUIRE(r.right - r.left == Approx(layer.y.sizes[a.column]));
            REQUIRE(r.top - r.bottom == Approx(layer.z.sizes[a.row]));
            if (a.module > 1) continue;  // others of its type are alike
            auto& others = drawn[{a.module, a.layer}];
            if (std::any_of(others.begin(), others.end(), [&](const auto& o) { return covers(o, r); }))
                FAIL("crystal " << i << " covers another");
            others.push_back(r);
        }
    }
}

TEST_CASE("shape: the map shows modules at their angle and z") {
    const auto s = example_of("unequal-blocks");
    const config::UnrolledMap map(s.arrangement);
    const auto middle = [&](std::uint32_t module) {
        const config::MapRectangle r = map.module(module);
        return std::pair((r.left + r.right) / 2, (r.bottom + r.top) / 2);
    };
    // Twelve around, two along the axis 19 mm apart.
    for (std::uint32_t k = 1; k < 12; ++k) {
        CHECK(middle(k).first - middle(k - 1).first ==
              Approx(middle(1).first - middle(0).first).margin(1e-3));
        CHECK(middle(k).second == Approx(middle(0).second));
    }
    CHECK(middle(1).first > middle(0).first);
    CHECK(middle(12).first == Approx(middle(0).first));
    CHECK(middle(12).second - middle(0).second == Approx(19));

    // The modules of a side are as far apart as in space, the insert and the ring around it have bands.
    const auto box = example_of("box");
    const config::UnrolledMap of_box(box.arrangement);
    CHECK(of_box.modules()[1].front[0] - of_box.modules()[0].front[0] == Approx(24.4));
    const auto insert = example_of("insert");
    const config::UnrolledMap of_insert(insert.arrangement);
    std::map<std::string, std::pair<double, double>> bands;
    for (std::uint32_t m = 0; m < insert.arrangement->modules().size(); ++m) {
        const std::string& group = insert.arrangement->modules()[m].name;
        const config::MapRectangle r = of_insert.module(m);
        const auto [band, fresh] = bands.emplace(group, std::pair(r.bottom, r.top));
        if (fresh) continue;
        band->second.first = std::min(band->second.first, r.bottom);
        band->second.second = std::max(band->second.second, r.top);
    }
    REQUIRE(bands.size() == 2);
    const auto& [a, b] = std::pair(bands.begin()->second, bands.rbegin()->second);
    CHECK((a.second <= b.first || b.second <= a.first));
    // Those of one angle are above each other.
    std::map<std::int64_t, double> places;
    for (std::uint32_t m = 0; m < insert.arrangement->modules().size(); ++m) {
        const config::Vector3& out = insert.arrangement->modules()[m].outward;
        const auto angle = std::llround(std::atan2(out[1], out[0]) * 1e5);
        const auto place = places.emplace(angle, of_insert.modules()[m].front[0]).first;
        CHECK(of_insert.modules()[m].front[0] == Approx(place->second).margin(1e-3));
    }
}

TEST_CASE("shape: modules in any position have a place on the map of their own") {
    // Behind another of the same direction, at an angle, turned, and at both ends of the bore.
    const auto s = config::scanner_from_json(nlohmann::json::parse(R"({
        "name": "odd", "tick_ps": 10, "position_size": 8,
        "module_types": [{"name": "block", "layers": [{"y": {"count": 2, "pitch_mm": 4}, "z": {"count": 3, "pitch_mm": 2}, "length_mm": 10}]}],
        "modules": [{"type": "block", "place": {"front_mm": [30, 0, 0], "outward": [1, 0, 0]}},
                    {"type": "block", "place": {"front_mm": [40.5, 0, 0], "outward": [1, 0, 0]}},
                    {"type": "block", "place": {"front_mm": [-30, 0, 0], "outward": [-1, 0, 0], "turn_deg": 90}},
                    {"type": "block", "place": {"front_mm": [0, 30, 20], "outward": [0, 1, 0.5]}},
                    {"type": "block", "place": {"front_mm": [0, 0, 60], "outward": [0, 0, 1]}},
                    {"type": "block", "place": {"front_mm": [0, 0, -60], "outward": [0, 0, -1]}}]})"));
    const config::UnrolledMap map(s.arrangement);
    for (std::uint32_t m = 0; m < 6; ++m) {
        const auto r = map.module(m);
        CHECK(r.right > r.left);
        CHECK(r.top > r.bottom);
        for (std::uint32_t n = 0; n < m; ++n) {
            CAPTURE(m, n);
            CHECK_FALSE(covers(r, map.module(n)));
        }
    }
    // A turned module has its rows around the axis.
    CHECK(map.module(2).right - map.module(2).left == Approx(6));
    CHECK(map.module(2).top - map.module(2).bottom == Approx(8));
    // The lower edge of the one at an angle is nearer than its middle.
    CHECK(config::extent_of(s).bore_radius_mm == Approx(30 - 3 * 0.5 / std::hypot(1, 0.5)));
}

}  // namespace petacq::test

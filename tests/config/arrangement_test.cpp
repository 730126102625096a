// Descriptions in the long form: where crystals are, their numbers, their addresses, and what is refused.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "config/scanner/arrangement.hpp"
#include "config/scanner/depth_of_interaction.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/largest_scanner.hpp"
#include "tests/support/scanner_with_gaps.hpp"

namespace petacq::test {

namespace {

using nlohmann::json;

/// Two layers, the second of other crystals; two modules that face each other.
json two_modules() {
    return json::parse(R"({
        "name": "two", "tick_ps": 10, "position_size": 8,
        "module_types": [{"name": "block", "layers": [
            {"y": {"sizes_mm": [1, 2, 3], "gaps": [{"after": 1, "mm": 0.5}]}, "z": {"count": 2, "pitch_mm": 4}, "length_mm": 5},
            {"y": {"count": 2, "pitch_mm": 3, "size_mm": 2}, "z": {"count": 1, "pitch_mm": 8}, "length_mm": 7, "gap_mm": 1, "material": "BGO"}]}],
        "modules": [{"type": "block", "panel": {"radius_mm": 20, "count": 1, "pitch_mm": 10}},
                    {"type": "block", "panel": {"radius_mm": 20, "angle_deg": 180, "count": 1, "pitch_mm": 10}}]})");
}

std::string refusal(const json& document) {
    return complaint([&] { (void)config::scanner_from_json(document); });
}

config::Scanner example_scanner(const std::string& name) {
    return config::load_scanner(example("scanners/" + name + ".scanner.json"));
}

}  // namespace

TEST_CASE("arrangement: the ring of the short form is where its crystals are") {
    const auto check = [](const config::Scanner& s) {
        const auto arrangement = config::arrangement_of(s);
        REQUIRE(arrangement->crystal_count() == s.geometry.crystal_count());
        for (std::uint32_t i = 0; i < arrangement->crystal_count(); ++i) {
            const config::CrystalAddress address = arrangement->address(i);
            REQUIRE(arrangement->crystal(address) == i);
            const config::CrystalPlace expected = config::crystal_place(s, i);
            const config::CrystalPlace found = arrangement->place(i);
            for (std::size_t axis = 0; axis < 3; ++axis) {
                REQUIRE(found.front_centre_mm[axis] == Approx(expected.front_centre_mm[axis]).margin(1e-9));
                REQUIRE(found.outward[axis] == Approx(expected.outward[axis]).margin(1e-12));
            }
        }
        for (std::uint32_t bdm = 0; bdm < s.geometry.bdm_count; ++bdm) {
            for (std::uint32_t du = 0; du < s.geometry.du_count; ++du)
                REQUIRE(arrangement->address(s.geometry.crystal(bdm, du, 0)).module == bdm);
        }
    };
    check(tiny_scanner());
    check(config::load_scanner(example("small.scanner.json")));
}

TEST_CASE("arrangement: crystals of the long form are numbered module by module, layer by layer") {
    const auto s = config::scanner_from_json(two_modules());
    REQUIRE_FALSE(s.is_ring());
    CHECK(s.geometry.bdm_count == 2);
    CHECK(s.geometry.du_count == 1);
    CHECK(s.geometry.crystals_per_du() == 8);
    REQUIRE(s.geometry.crystal_count() == 16);
    for (std::uint32_t i = 0; i < 16; ++i)
        CHECK(s.geometry.crystal(i / 8, 0, i % 8) == i);
    // Sizes 1, 2, 3 with a gap of 0.5: 6.5 mm in all, from -3.25.
    const auto at = [&](std::uint32_t i) { return config::crystal_place(s, i).front_centre_mm; };
    CHECK(at(0)[0] == Approx(20));
    CHECK(at(0)[1] == Approx(-2.75));
    CHECK(at(0)[2] == Approx(-2));
    CHECK(at(1)[2] == Approx(2));
    CHECK(at(2)[1] == Approx(-0.75));
    CHECK(at(4)[1] == Approx(1.75));
    CHECK(at(6)[0] == Approx(26));  // behind 5 mm and a gap of 1
    CHECK(at(6)[1] == Approx(-1.5));
    CHECK(at(8)[0] == Approx(-20));
    CHECK(at(8)[1] == Approx(2.75));
    CHECK(s.arrangement->layer_of(7).material == "BGO");
    CHECK(s.arrangement->layer_of(7).length_mm == 7);
}

TEST_CASE("arrangement: a description survives being written and read") {
    const auto s = config::scanner_from_json(two_modules());
    const json once = config::to_json(s);
    CHECK(config::to_json(config::scanner_from_json(once)) == once);
}

TEST_CASE("arrangement: every example has each crystal once, with a place of its own") {
    std::size_t examples = 0;
    for (const auto& entry : std::filesystem::directory_iterator(example("scanners"))) {
        if (!entry.path().string().ends_with(".scanner.json")) continue;
        ++examples;
        const auto s = config::load_scanner(entry.path());
        INFO(s.name);
        const config::Geometry& g = s.geometry;
        std::vector<bool> seen(g.crystal_count());
        for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
            for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local) {
                const std::uint32_t crystal = g.crystal(unit / g.du_count, unit % g.du_count, local);
                if (crystal >= seen.size() || seen[crystal])
                    FAIL("crystal " << crystal << " of unit " << unit);
                seen[crystal] = true;
            }
        }
        CHECK(std::count(seen.begin(), seen.end(), false) == 0);
        CHECK(g.pairs->crystals.size() == g.crystal_count());
    }
    CHECK(examples == 10);
}

TEST_CASE("arrangement: which groups pair") {
    SECTION("by name") {
        const auto s = example_scanner("two-heads");
        const config::PairGeometry& pairs = *s.geometry.pairs;
        REQUIRE(pairs.groups.size() == 2);
        CHECK(pairs.may_pair == std::vector<std::uint8_t>{0, 1, 1, 0});
    }
    SECTION("by angle") {
        const auto s = example_scanner("two-rings");
        const config::PairGeometry& pairs = *s.geometry.pairs;
        const auto group_at = [&](std::uint32_t module) {
            return pairs.crystals[s.arrangement->modules()[module].first_crystal].group;
        };
        // Modules of the first ring are 22.5 degrees apart, of the second 25.7.
        CHECK_FALSE(pairs.may_pair[group_at(0) * pairs.groups.size() + group_at(1)]);
        CHECK(pairs.may_pair[group_at(0) * pairs.groups.size() + group_at(2)]);
        CHECK_FALSE(pairs.may_pair[group_at(16) * pairs.groups.size() + group_at(17)]);
        CHECK(pairs.may_pair[group_at(16) * pairs.groups.size() + group_at(18)]);
    }
    SECTION("rings are places along the axis") {
        const auto s = example_scanner("hexagon");
        std::set<std::uint32_t> rings;
        for (const auto& crystal : s.geometry.pairs->crystals)
            rings.insert(crystal.ring);
        CHECK(rings.size() == 16);
    }
}

TEST_CASE("arrangement: 65536 modules are the most, and 256 with frames of version 1") {
    json document = largest_description();
    const config::Scanner largest = config::scanner_from_json(document);
    CHECK(largest.geometry.bdm_count == 65'536);
    CHECK(largest.geometry.crystal_count() == 65'536);
    const json one_more =
        json::parse(R"({"type": "m", "place": {"front_mm": [0, 0, 900], "outward": [0, 0, 1]}})");
    document["modules"].push_back(one_more);
    CHECK(refusal(document) == "/modules/1: expected at most 65536 modules in all, found 65537");

    document["modules"] = {{{"type", "m"}, {"ring", {{"count", 256}, {"radius_mm", 168}}}}};
    document["frame_version"] = 1;
    CHECK(config::scanner_from_json(document).geometry.bdm_count == 256);
    document["modules"].push_back(one_more);
    CHECK(refusal(document) ==
          "/channel_map: expected numbers of BDMs below 256 with frame_version 1, found 256");
}

TEST_CASE("arrangement: 16 Mi crystals are the most, and 65535 of a unit") {
    const auto with = [](const std::vector<json>& layers, const std::vector<json>& modules) {
        json document = largest_description();
        document["module_types"] = json::array();
        for (std::size_t i = 0; i < layers.size(); ++i)
            document["module_types"].push_back(
                {{"name", std::to_string(i)}, {"layers", json::array({layers[i]})}});
        document["modules"] = modules;
        return refusal(document);
    };
    const auto layer = [](int y, int z, int count) {
        return json{{"y", {{"count", y}, {"pitch_mm", 0.1}}},
                    {"z", {{"count", z}, {"pitch_mm", 0.1}}},
                    {"length_mm", 0.1},
                    {"count", count}};
    };
    const auto ring = [](const char* type, int count) {
        return json{{"type", type}, {"ring", {{"count", count}, {"radius_mm", 500}}}};
    };
    // 2^24 in each of 2^6 layers.
    CHECK(with({layer(4096, 4096, 64)}, {ring("0", 12)}) ==
          "/module_types/0/layers/0: expected at most 16777216 crystals in one module of each type, found "
          "1073741824 up to this layer");
    CHECK(with({layer(4096, 4096, 1), layer(1, 1, 1)}, {ring("0", 1), ring("1", 1)}) ==
          "/module_types/1/layers/0: expected at most 16777216 crystals in one module of each type, found "
          "16777217 up to this layer");
    CHECK(with({layer(500, 500, 64)}, {ring("0", 12)}) ==
          "/modules/0: expected at most 16777216 crystals in all, found 192000000");
    CHECK(with({layer(4096, 4096, 1)}, {ring("0", 256)}) ==
          "/modules/0: expected at most 16777216 crystals in all, found 4294967296");
    CHECK(with({layer(256, 256, 1)}, {ring("0", 12)}) ==
          "/module_types/0/units: expected at most 65535 crystals in a unit, found at least 65536 in unit 0");
    CHECK(
        with(
            {layer(1, 1, 1)},
            {json::parse(
                R"({"type": "0", "polygon": {"sides": 4096, "per_side": 4096, "radius_mm": 500, "pitch_mm": 1}})")}) ==
        "/modules/0: expected at most 65536 modules in all, found 16777216");
}

TEST_CASE("arrangement: 4096 kinds of modules are the most that pairs tell apart") {
    json document = largest_description();
    document["modules"] = json::parse(R"([{"type": "m", "ring": {"count": 9000, "radius_mm": 6000}}])");
    const std::string angles = refusal(document);
    document.erase("good_pairs");
    const std::string places = refusal(document);
    CHECK(
        places ==
        "/modules: expected at most 4096 kinds of modules that differ in group, place around the ring, found "
        "9000; panel and place give modules no place around a ring");
    CHECK(angles ==
          "/modules: expected at most 4096 kinds of modules that differ in group, place around the ring, or "
          "direction around the axis, found 9000; panel and place give modules no place around a ring, and "
          "without good_pairs.min_angle_deg directions do not count");
    document["modules"] = json::array();
    for (int i = 0; i < 4500; ++i) {
        const double angle = 2 * 3.14159265 * i / 4500;
        document["modules"].push_back({{"type", "m"},
                                       {"place",
                                        {{"front_mm", {6000 * std::cos(angle), 6000 * std::sin(angle), 0}},
                                         {"outward", {std::cos(angle), std::sin(angle), 0}}}}});
    }
    CHECK(refusal(document).empty());
}

TEST_CASE("arrangement: modules that face along the axis have no angle around it") {
    json document = two_modules();
    const auto disc = [](double x, double y, double z) {
        return json{{"type", "block"}, {"place", {{"front_mm", {0, 0, 30 * z}}, {"outward", {x, y, z}}}}};
    };
    document["good_pairs"]["min_angle_deg"] = 40;
    // The first would be at 315 degrees.
    document["modules"] = {disc(1e-17, -1e-17, 1), disc(0, 0, -1)};
    CHECK(refusal(document) ==
          "/good_pairs/min_angle_deg: expected at most 0.0, the largest angle between two modules that may "
          "pair, "
          "found 40");
    // With a direction they are judged by it.
    document["modules"] = {disc(1e-3, -1e-3, 1), disc(1e-3, 0, -1)};
    CHECK(refusal(document).empty());
    // A ring between the discs pairs within itself alone.
    document["modules"] = {disc(1e-17, -1e-17, 1), disc(0, 0, -1),
                           json{{"type", "block"}, {"ring", {{"count", 4}, {"radius_mm", 15}}}}};
    const config::Scanner s = config::scanner_from_json(document);
    const config::PairGeometry& pairs = *s.geometry.pairs;
    const auto may_pair = [&](std::uint32_t a, std::uint32_t b) {
        const auto group = [&](std::uint32_t module) {
            return pairs.crystals[s.arrangement->modules()[module].first_crystal].group;
        };
        return pairs.may_pair[group(a) * pairs.groups.size() + group(b)] != 0;
    };
    for (std::uint32_t a = 0; a < 6; ++a) {
        for (std::uint32_t b = 0; b < 6; ++b)
            CHECK(may_pair(a, b) == (a >= 2 && b >= 2 && a != b));
    }
}

TEST_CASE("arrangement: sources carry the BDMs that have units, and no others") {
    const json document = description_with_gaps();
    CHECK(refusal(document).empty());
    json carries_a_gap = document;
    carries_a_gap["sources"][0]["bdms"].push_back(4);
    CHECK(refusal(carries_a_gap) ==
          "/sources/0/bdms/3: expected one of the 12 BDMs that have units, from 3 to 25, found 4");
    json lacks_one = document;
    lacks_one["sources"].erase(1);
    CHECK(refusal(lacks_one) ==
          "/sources: expected each of the 12 BDMs that have units in the bdms of a source; BDM 5 is in none");
}

TEST_CASE("arrangement: mistakes are refused with what was expected") {
    const auto with = [](const char* pointer, const json& value) {
        json document = two_modules();
        document[json::json_pointer(pointer)] = value;
        return refusal(document);
    };
    CHECK(lacking(with("/modules/0/type", "blok"), {"/modules/0/type", "/module_types", "\"blok\""}).empty());
    json unused = two_modules()["module_types"];
    unused.push_back(unused[0]);
    unused[1]["name"] = "blok";
    CHECK(with("/module_types", unused) ==
          "/module_types/1: expected a type that an item of /modules names, found \"blok\", which none does");
    CHECK(lacking(with("/modules/0/ring", json{{"count", 3}, {"radius_mm", 9}}),
                  {"/modules/0: expected one of ring", "found ring and panel"})
              .empty());
    CHECK(lacking(with("/modules/0/panel", nullptr), {"/modules/0: expected one of ring", "found none"})
              .empty());
    CHECK(lacking(with("/modules/1/panel", json{{"radius_mm", 27}, {"count", 1}, {"pitch_mm", 10}}),
                  {"module 0 (of /modules/0) overlaps module 1 (of /modules/1) by 5.75 mm"})
              .empty());
    CHECK(lacking(with("/modules/1/along_z", json{{"count", 2}}),
                  {"/modules/1/along_z/pitch_mm: expected above 0 beside count = 2, found 0"})
              .empty());
    CHECK(lacking(with("/module_types/0/layers/0/y/count", 3), {"/module_types/0/layers/0/y", "found both"})
              .empty());
    CHECK(
        lacking(with("/module_types/0/layers/1/y/size_mm", 3.5), {"/size_mm: expected at most pitch_mm = 3"})
            .empty());
    CHECK(lacking(with("/module_types/0/layers/0/y/gaps/0/after", 3),
                  {"/gaps/0/after: expected less than the 3 crystals, found 3"})
              .empty());
    CHECK(lacking(with("/module_types/0/layers/0/y/gaps/1", json{{"after", 1}, {"mm", 2}}),
                  {"/module_types/0/layers/0/y/gaps/1/after: expected each place once, found 1 again"})
              .empty());
    CHECK(lacking(with("/module_types/0/units", json::parse(R"([{"layers": [0, 0]}])")),
                  {"/module_types/0/units: expected all 8 crystals", "found 6"})
              .empty());
    CHECK(lacking(with("/module_types/0/units", json::parse(R"([{}, {"layers": [1, 1]}])")),
                  {"/module_types/0/units/1: expected crystals of its own", "is in unit 0, too"})
              .empty());
    CHECK(lacking(with("/position_size", 2), {"/position_size", "= 8, found 2"}).empty());
    CHECK(lacking(with("/channel_map", json::parse(R"({"units": [{"bdm": 0, "du": 0, "module": 0}]})")),
                  {"/channel_map/units", "unit 0 of module 1 is missing"})
              .empty());
    CHECK(lacking(
              with("/channel_map",
                   json::parse(
                       R"({"units": [{"bdm": 0, "du": 0, "module": 0}, {"bdm": 0, "du": 0, "module": 1}]})")),
              {"/channel_map/units/1", "BDM 0, DU 0 again"})
              .empty());
    CHECK(lacking(with("/good_pairs", json::parse(R"({"between": [["", "left"]]})")),
                  {"/good_pairs/between/0/1", "\"left\""})
              .empty());
    {
        json heads = two_modules();
        heads["modules"][0]["group"] = "left";
        heads["modules"][1]["group"] = "right";
        const auto between = [&](const char* pairs) {
            heads["good_pairs"]["between"] = json::parse(pairs);
            return refusal(heads);
        };
        CHECK(between(R"([["left", "right"], ["left", "left"]])").empty());
        CHECK(
            between(R"([["left", "right"], ["left", "right"]])") ==
            R"(/good_pairs/between/1: expected each pair of groups once, in one order, found ["left","right"] again)");
        CHECK(
            between(R"([["left", "left"], ["left", "right"], ["right", "left"]])") ==
            R"(/good_pairs/between/2: expected each pair of groups once, in one order, found ["right","left"] again)");
        CHECK(
            between(R"([["left", "left"], ["left", "left"]])") ==
            R"(/good_pairs/between/1: expected each pair of groups once, in one order, found ["left","left"] again)");
    }
    CHECK(
        lacking(
            with(
                "/good_pairs",
                json::parse(
                    R"({"cylinder": {"radius_mm": 5, "length_mm": 5}, "box": {"x_mm": 1, "y_mm": 1, "z_mm": 1}})")),
            {"/good_pairs: expected a cylinder or a box, found both"})
            .empty());
    {
        json ring = two_modules();
        ring["modules"] = json::parse(R"([{"type": "block", "ring": {"count": 5, "radius_mm": 20}}])");
        ring["good_pairs"]["min_angle_deg"] = 144;
        CHECK(refusal(ring).empty());
        ring["good_pairs"]["min_angle_deg"] = 150;
        CHECK(lacking(refusal(ring),
                      {"/good_pairs/min_angle_deg: expected at most 144.0, the largest angle between two "
                       "modules that may pair, found 150"})
                  .empty());
    }
    CHECK(lacking(with("/sources", json::parse(R"([{"id": 0, "bdms": [0, 2]}])")),
                  {"/sources/0/bdms/1", "found 2"})
              .empty());
    CHECK(lacking(with("/geometry", json::object()), {"/geometry: unknown key"}).empty());
}

}  // namespace petacq::test

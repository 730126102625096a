#include "config/scanner/scanner.hpp"

#include <nlohmann/json.hpp>

#include "config/configuration.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

namespace {

using nlohmann::json;

std::string about_scanner(const char* pointer, const char* value) {
    json document = json_of(example("small.scanner.json"));
    document[json::json_pointer(pointer)] = json::parse(value);
    return complaint([&] { config::scanner_from_json(document); });
}

}  // namespace

TEST_CASE("the examples are what they say") {
    const auto small = config::load_scanner(example("small.scanner.json"));
    CHECK(small.geometry.crystal_count() == 24 * 6 * 20);
    CHECK(small.geometry.modules.x == 1);
    CHECK(small.dimensions.module_gap_z_mm == 1);
    CHECK(small.tick_ps == 15.625);
    // The small scanner for tests has no accidental symmetry.
    CHECK(small.geometry.crystals.y != small.geometry.crystals.z);
    CHECK(small.geometry.blocks.y != small.geometry.blocks.z);
    CHECK(small.geometry.modules.y > 1);
    CHECK(small.geometry.modules.z > 1);
    const auto mouse = config::load_scanner(example("mouse.scanner.json"));
    CHECK(mouse.geometry.crystal_count() == 43200);
    CHECK(mouse.geometry.bdm_count == 48);
}

TEST_CASE("a scanner survives the way through JSON") {
    const auto document = config::to_json(tiny_scanner());
    CHECK(config::to_json(config::scanner_from_json(document)) == document);
    json filled = json_of(example("small.scanner.json"));
    for (const char* key : {"modules", "blocks", "crystals"})
        filled["geometry"][key]["x"] = 1;
    CHECK(config::to_json(config::scanner_from_json(filled)) == filled);
}

TEST_CASE("counts that do not fit each other are refused") {
    CHECK(about_scanner("/geometry/bdm_count", "23") ==
          "/geometry/bdm_count: expected channels * modules.y * modules.z = 24, found 23");
    CHECK(about_scanner("/geometry/du_count", "5") ==
          "/geometry/du_count: expected blocks.y * blocks.z = 6, found 5");
    CHECK(about_scanner("/geometry/modules/x", "2") == "/geometry/modules/x: expected 1, found 2");
    CHECK(about_scanner("/geometry/position_size", "257")
              .starts_with("/geometry/position_size: expected an integer from 1"));
    CHECK(about_scanner("/geometry/position_size", "4")
              .starts_with("/geometry/position_size: expected position_size squared"));
    CHECK(about_scanner("/geometry/crystals", R"({"y": 257, "z": 1})")
              .starts_with("/geometry/crystals/y: expected"));
    CHECK(about_scanner("/geometry/crystals", R"({"y": 16, "z": 17})")
              .starts_with("/geometry/crystals: expected crystals.y"));
    CHECK(about_scanner("/geometry/channels", "0").starts_with("/geometry/channels: expected"));
    CHECK(about_scanner("/geometry/channels", "256").starts_with("/geometry/bdm_count: expected"));
    CHECK(about_scanner("/tick_ps", "0").starts_with("/tick_ps: expected a number from 0.001"));
    CHECK(about_scanner("/tick_ps", "\"10\"").starts_with("/tick_ps: expected"));
    CHECK(about_scanner("/dimensions/crystal_pitch_y_mm", "0")
              .starts_with("/dimensions/crystal_pitch_y_mm: expected"));
    CHECK(about_scanner("/dimensions/block_gap_y_mm", "-0.1")
              .starts_with("/dimensions/block_gap_y_mm: expected"));
    CHECK(about_scanner("/geometry/crystls", "{}") ==
          "/geometry/crystls: unknown key; did you mean \"crystals\"?");
}

TEST_CASE("sources that do not fit the scanner or each other are refused") {
    CHECK(about_scanner("/sources/1/bdms/2", "24") ==
          "/sources/1/bdms/2: expected one of the 24 BDMs that have units, from 0 to 23, found 24");
    CHECK(about_scanner("/sources/1/bdms", "[]").starts_with("/sources/1/bdms: expected"));
    CHECK(about_scanner("/sources/1/bdms", "[6, 6]").starts_with("/sources/1/bdms"));
    CHECK(
        about_scanner("/sources/1/bdms", "[6, 7, 8, 9, 11]") ==
        "/sources: expected each of the 24 BDMs that have units in the bdms of a source; BDM 10 is in none");
    CHECK(about_scanner("/sources/3/id", "1") ==
          "/sources/3/id: expected an id of its own, found 1 as in /sources/1");
    CHECK(about_scanner("/sources/3/id", "65536")
              .starts_with("/sources/3/id: expected an integer from 0 to 65535"));
    CHECK(about_scanner("/sources/2", R"({"bdms": [12, 13, 14, 15, 16, 17]})") ==
          "/sources/2: expected an id (sequenced framing), or an address and a port (bare framing)");
    CHECK(about_scanner("/sources/2", R"({"bdms": [12], "address": "10.0.0.1", "port": 5})") ==
          "/sources/2: expected an id, as in /sources/0");
    CHECK(about_scanner("/sources/2", R"({"bdms": [12], "id": 2, "port": 5})") ==
          "/sources/2/port: expected none together with an id, found 5");
    CHECK(about_scanner("/sources/2/address", "\"board-2\"").starts_with("/sources/2/address: expected"));
    CHECK(about_scanner("/sources/2/boards", "3").starts_with("/sources/2/boards: unknown key"));
    CHECK(about_scanner("/sources", "[]").empty());
    CHECK(about_scanner("/sources/2/address", "\"10.0.0.1\"").empty());
    // Two sources may carry parts of one module.
    CHECK(about_scanner("/sources/2/bdms", "[12, 13, 14, 15, 16, 17, 18]").empty());
}

TEST_CASE("sources without an id are known by address and port") {
    json document = json_of(example("small.scanner.json"));
    json all = json::array();
    for (int bdm = 0; bdm < 24; ++bdm)
        all.push_back({{"address", "10.0.0.1"}, {"port", 5000 + bdm}, {"bdms", {bdm}}});
    document["sources"] = all;
    const auto scanner = config::scanner_from_json(document);
    REQUIRE(scanner.sources.size() == 24);
    CHECK_FALSE(scanner.sources[3].id);
    CHECK(scanner.sources[3].port == 5003);
    CHECK(config::to_json(scanner)["sources"] == all);
    document["sources"][3]["port"] = 5001;
    CHECK(complaint([&] { config::scanner_from_json(document); }) ==
          "/sources/3: expected an address and port of its own, found 10.0.0.1:5001 as in /sources/1");
    document["sources"][0] = {{"id", 4}, {"bdms", {0}}};
    CHECK(complaint([&] { config::scanner_from_json(document); }) ==
          "/sources/1: expected an id, as in /sources/0");
}

TEST_CASE("256 crystals in a block are allowed") {
    json document = json_of(example("mouse.scanner.json"));
    document["geometry"]["crystals"] = {{"y", 16}, {"z", 16}};
    document["dimensions"]["ring_radius_mm"] = 60;
    CHECK(config::scanner_from_json(document).geometry.crystals_per_du() == 256);
}

TEST_CASE("frames of version 2 name more modules, and crystals of a block") {
    json document = json_of(example("mouse.scanner.json"));
    document.erase("sources");
    document["dimensions"]["ring_radius_mm"] = 10'000;
    json& g = document["geometry"];
    const auto about = [&] { return complaint([&] { config::scanner_from_json(document); }); };
    g["channels"] = 65'536 / 4;
    g["modules"] = {{"y", 1}, {"z", 4}};
    g["bdm_count"] = 65'536;
    g["blocks"] = {{"y", 1}, {"z", 1}};
    g["du_count"] = 1;
    g["crystals"] = {{"y", 8}, {"z", 8}};
    g["position_size"] = 64;
    document["dimensions"]["ring_radius_mm"] = 100'000;
    document["dimensions"]["crystal_pitch_y_mm"] = 1;
    CHECK(about() == "/geometry/channels: expected an integer from 1 to 256, found 16384");
    document["frame_version"] = 2;
    const config::Scanner large = config::scanner_from_json(document);
    CHECK(large.frame_version == config::FrameVersion::two);
    CHECK(large.geometry.bdm_count == 65'536);
    CHECK(large.geometry.crystal_count() == 4'194'304);
    CHECK(config::to_json(config::scanner_from_json(config::to_json(large))) == config::to_json(large));
    CHECK(config::to_json(large)["frame_version"] == 2);
    g["position_size"] = 256;
    CHECK(about().starts_with("/geometry/position_size: expected at most 2147483648 positions"));
    g["position_size"] = 64;
    g["crystals"] = {{"y", 8}, {"z", 33}};
    CHECK(about().starts_with("/geometry: expected at most 16777216 crystals in all, found 17301504"));
    g["crystals"] = {{"y", 8}, {"z", 8}};
    g["modules"]["z"] = 65'536;  // products beyond 32 bits
    g["channels"] = 65'536;
    CHECK(about() ==
          "/geometry/bdm_count: expected channels * modules.y * modules.z = 4294967296, found 65536");
    g["bdm_count"] = 65'537;
    CHECK(about() == "/geometry/bdm_count: expected an integer from 1 to 65536, found 65537");

    document = json_of(example("mouse.scanner.json"));
    document.erase("sources");
    document["dimensions"]["ring_radius_mm"] = 10'000;
    document["geometry"]["crystals"] = {{"y", 255}, {"z", 257}};
    CHECK(about() == "/geometry/crystals/z: expected an integer from 1 to 256, found 257");
    document["frame_version"] = 2;
    CHECK(config::scanner_from_json(document).geometry.crystals_per_du() == 65'535);
    document["geometry"]["crystals"] = {{"y", 256}, {"z", 256}};
    CHECK(about() == "/geometry/crystals: expected crystals.y * crystals.z of at most 65535, found 65536");
    document["frame_version"] = 3;
    CHECK(about() == "/frame_version: expected 1 or 2, found 3");
    // The usual version is not written.
    CHECK_FALSE(config::to_json(tiny_scanner()).contains("frame_version"));
}

TEST_CASE("modules that overlap in the ring are refused, with the radius that would do") {
    const std::string text = about_scanner("/dimensions/ring_radius_mm", "30");
    // Twelve modules of 2 * 5 crystals at 1.6 mm and one gap of 0.4 mm.
    CHECK(lacking(text, {"/dimensions/ring_radius_mm: ", "16.4 mm wide", "polygon of 12", "at least 30.6"}) ==
          "");
}

TEST_CASE("a scanner may have two heads, of any width") {
    json document = json_of(example("small.scanner.json"));
    document.erase("sources");
    document["geometry"]["channels"] = 1;  // two modules around
    document["geometry"]["bdm_count"] = 4;
    document["dimensions"]["ring_radius_mm"] = 5;
    const config::Scanner two = config::scanner_from_json(document);
    CHECK(two.geometry.modules_in_ring() == 2);
    const config::CrystalPlace a = config::crystal_place(two, 0);
    const config::CrystalPlace b = config::crystal_place(two, two.geometry.crystals_per_module_y());
    CHECK(a.outward[0] == Approx(1));
    CHECK(b.outward[0] == Approx(-1));
    CHECK(a.front_centre_mm[0] == Approx(5));
    CHECK(b.front_centre_mm[0] == Approx(-5));
    // The heads are one module apart, so that a condition can only exclude pairs within one head.
    config::Configuration configuration;
    configuration.sources.accept_any = true;
    configuration.coincidence.min_module_difference = 1;
    CHECK_NOTHROW(config::check_against_scanner(configuration, two));
    configuration.coincidence.min_module_difference = 2;
    CHECK(complaint([&] {
              config::check_against_scanner(configuration, two);
          }).starts_with("/coincidence/min_module_difference: "));
}

TEST_CASE("the crystal numbers are those of the contract") {
    // The formulas of the specification, with its names.
    const unsigned c = 6;
    const unsigned m = 2;
    const unsigned bY = 2;
    const unsigned bZ = 3;
    const unsigned cY = 5;
    const unsigned cZ = 4;
    const auto g = config::load_scanner(example("small.scanner.json")).geometry;
    std::vector<int> seen(g.crystal_count());
    for (unsigned bdm = 0; bdm < 24; ++bdm) {
        for (unsigned du = 0; du < 6; ++du) {
            for (unsigned origin = 0; origin < cY * cZ; ++origin) {
                const unsigned local = origin % cZ + (cY - 1 - origin / cZ) * cZ;
                const unsigned in_ring = bdm % (c * m) * bY * cY + du / bZ * cY + local / cZ;
                const unsigned ring = bdm / (c * m) * bZ * cZ + du % bZ * cZ + local % cZ;
                const unsigned crystal = in_ring + ring * (c * m * bY * cY);
                CHECK(g.local_of_origin(origin) == local);
                CHECK(g.crystal(bdm, du, local) == crystal);
                REQUIRE(crystal < seen.size());
                ++seen[crystal];
            }
        }
    }
    CHECK(std::count(seen.begin(), seen.end(), 1) == 2880);
    // Worked by hand: module 13 (2nd ring of modules, place 1), unit 4 (2nd block around, 2nd along), origin
    // 6 (row 1 from the far side: row 3, column 2).
    CHECK(g.local_of_origin(6) == 14);
    CHECK(g.crystal(13, 4, 14) == (1 * 10 + 5 + 3) + (12 + 4 + 2) * 120);
}

TEST_CASE("errors of a scanner file name the file") {
    const TemporaryDirectory dir;
    write_file(dir / "s.json", "{}");
    CHECK(complaint([&] {
              config::load_scanner(dir / "s.json");
          }).starts_with((dir / "s.json").string() + ": /name: missing"));
}

}  // namespace petacq::test

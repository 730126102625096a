// Exports of scanners in the long form: every event is between the crystals that recorded it, wherever the
// format says these are; and what a format cannot hold is refused.
#include <filesystem>
#include <map>
#include <random>
#include <sstream>
#include <tuple>

#include "config/scanner/arrangement.hpp"
#include "tests/tools/petlm/support.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

config::Scanner example_scanner(const std::string& name) {
    const config::Scanner scanner = config::load_scanner(std::filesystem::path(PETACQ_SOURCE_DIR) / "config" /
                                                         "examples" / "scanners" / (name + ".scanner.json"));
    // Some formats have one place for each crystal.
    nlohmann::json still = config::to_json(scanner);
    still.erase("rotation");
    return config::scanner_from_json(still);
}

/// Pairs of any crystals, as no format asks whether they lie opposite.
gpu::RecordVector<gpu::Coincidence> any_pairs(const config::Scanner& scanner, std::size_t count) {
    std::mt19937_64 random(11);
    gpu::RecordVector<gpu::Coincidence> out;
    std::uint64_t time = run_start;
    while (out.size() < count) {
        gpu::Coincidence c;
        c.time = time += 1000 + random() % 400'000;
        c.dt = static_cast<std::uint32_t>(random() % 300);
        c.crystal_a = static_cast<std::uint32_t>(random() % scanner.geometry.crystal_count());
        c.crystal_b = static_cast<std::uint32_t>(random() % scanner.geometry.crystal_count());
        if (c.crystal_a == c.crystal_b) continue;
        c.energy_a = c.energy_b = 511;
        if (random() % 4 == 0) c.kind = gpu::Kind::delayed;
        out.push_back(c);
    }
    return out;
}

struct CastorCrystal {
    config::Vector3 centre{};
    config::Vector3 outward{};
    config::Vector3 sizes{};  ///< length, across, along the axis
};

std::vector<double> comma_numbers(const std::string& text) {
    std::vector<double> out;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');)
        out.push_back(std::stod(part));
    return out;
}

std::vector<CastorCrystal> read_castor_scanner(const std::filesystem::path& stem) {
    auto keys = key_values(stem.string() + ".hscan", ": ");
    const auto counts = comma_numbers(keys.at("number of crystals in layer"));
    REQUIRE(std::stoul(keys.at("number of layers")) == counts.size());
    std::vector<CastorCrystal> out;
    Bytes data(stem.string() + ".lut");
    for (std::size_t layer = 0; layer < counts.size(); ++layer) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(counts[layer]); ++i) {
            CastorCrystal crystal;
            for (double& x : crystal.centre)
                x = data.take<float>();
            for (double& x : crystal.outward)
                x = data.take<float>();
            crystal.sizes = {comma_numbers(keys.at("crystals size depth")).at(layer),
                             comma_numbers(keys.at("crystals size trans")).at(layer),
                             comma_numbers(keys.at("crystals size axial")).at(layer)};
            out.push_back(crystal);
        }
    }
    REQUIRE(data.at_end());
    REQUIRE(comma_numbers(keys.at("mean depth of interaction")).size() == counts.size());
    REQUIRE(std::stoul(keys.at("number of elements")) == out.size());
    return out;
}

double distance_of(const config::Vector3& a, const config::Vector3& b) {
    return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

void require_same(const CastorCrystal& found, const config::Scanner& scanner, std::uint32_t crystal) {
    const config::CrystalAddress at = scanner.arrangement->address(crystal);
    const config::CrystalLayer& layer = scanner.arrangement->layer_of(crystal);
    const auto place = config::crystal_place(scanner, crystal);
    REQUIRE(distance_of(found.centre, config::point_at_depth(place, layer.length_mm / 2)) < 1e-4);
    REQUIRE(distance_of(found.outward, place.outward) < 1e-6);
    const config::Vector3 sizes{layer.length_mm, layer.y.sizes[at.column], layer.z.sizes[at.row]};
    REQUIRE(distance_of(found.sizes, sizes) < 1e-9);
}

struct StirNumber {
    std::uint32_t ring = 0;
    std::uint32_t detector = 0;
    std::uint32_t layer = 0;
    auto operator<=>(const StirNumber&) const = default;  // NOLINT(modernize-use-nullptr): none is there
};

std::map<StirNumber, config::Vector3> read_numbered_map(const std::filesystem::path& file) {
    std::map<StirNumber, config::Vector3> out;
    std::istringstream lines(read_file(file));
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('#')) continue;
        StirNumber n;
        config::Vector3 p{};
        REQUIRE(std::sscanf(line.c_str(), "%u %u %u %lf %lf %lf", &n.ring, &n.detector, &n.layer, p.data(),
                            p.data() + 1, p.data() + 2) == 6);
        REQUIRE(out.emplace(n, p).second);
    }
    return out;
}

/// Both crystals of every event.
std::vector<std::pair<StirNumber, StirNumber>> read_stir_events(const std::filesystem::path& file) {
    Bytes data(file);
    (void)data.take<std::array<char, 32>>();
    std::vector<std::pair<StirNumber, StirNumber>> out;
    while (!data.at_end()) {
        const auto record = data.take<std::uint64_t>();
        if (record >> 63U != 0) continue;
        const auto bits = [&](unsigned from, unsigned count) {
            return static_cast<std::uint32_t>(record >> from & ((std::uint64_t{1} << count) - 1));
        };
        out.push_back({{bits(0, 8), bits(16, 16), bits(48, 4)}, {bits(8, 8), bits(32, 16), bits(52, 4)}});
    }
    return out;
}

const std::array<const char*, 8> long_examples = {"box",          "hexagon",  "insert",    "monolithic",
                                                  "partial-ring", "phoswich", "two-heads", "unequal-blocks"};

}  // namespace

TEST_CASE("export: castor has the place and the sizes of every crystal of any scanner", "[petlm][castor]") {
    for (const char* name : long_examples) {
        CAPTURE(name);
        const TemporaryDirectory directory;
        const config::Scanner scanner = example_scanner(name);
        const auto records = any_pairs(scanner, 300);
        write_run(directory / "run", records, scanner);
        const Outcome outcome = exported("castor", directory / "run", directory / "out");
        CAPTURE(outcome.out);
        REQUIRE(outcome.status == 0);
        const auto crystals = read_castor_scanner(directory / "out" / scanner.name);
        REQUIRE(crystals.size() == scanner.geometry.crystal_count());
        for (const auto kind : {gpu::Kind::prompt, gpu::Kind::delayed}) {
            Bytes data(directory / "out" / (kind == gpu::Kind::prompt ? "prompts.cdf" : "delayeds.cdf"));
            for (const gpu::Coincidence& c : of_kind(records, kind)) {
                (void)data.take<std::uint32_t>();
                require_same(crystals.at(data.take<std::uint32_t>()), scanner, c.crystal_a);
                require_same(crystals.at(data.take<std::uint32_t>()), scanner, c.crystal_b);
            }
            REQUIRE(data.at_end());
        }
        // Every crystal is there once, and crystals.csv names them in CASToR's order.
        std::istringstream lines(read_file(directory / "out" / "crystals.csv"));
        std::string line;
        std::getline(lines, line);
        std::set<unsigned long> seen;
        for (const CastorCrystal& crystal : crystals) {
            REQUIRE(std::getline(lines, line));
            const unsigned long number = std::stoul(line);
            REQUIRE(seen.insert(number).second);
            require_same(crystal, scanner, static_cast<std::uint32_t>(number));
        }
    }
}

TEST_CASE("export: castor states which modules pair as an angle, or says that it cannot", "[petlm][castor]") {
    const auto angle_and_text = [](const std::string& name, const nlohmann::json& rules) {
        const TemporaryDirectory directory;
        const config::Scanner scanner = example_scanner(name);
        write_run(directory / "run", any_pairs(scanner, 5), scanner, 1, rules);
        const Outcome outcome = exported("castor", directory / "run", directory / "out");
        REQUIRE(outcome.status == 0);
        auto keys = key_values(directory / "out" / (scanner.name + ".hscan"), ": ");
        return std::pair(std::stod(keys.at("min angle difference")), outcome.out);
    };
    // 12 modules around: those next to each other are 30 degrees apart.
    const auto ring = angle_and_text("unequal-blocks", {{"min_module_difference", 3}});
    CHECK(ring.first == Approx(75));
    CHECK(ring.second.find("not told by an angle") == std::string::npos);
    // Pairs within the insert and within the body are at all angles; between them they are, too.
    const auto insert = angle_and_text("insert", nlohmann::json::object());
    CHECK_THAT(insert.second, contains("field of view"));
}

TEST_CASE("export: stir finds both crystals of every event in its map", "[petlm][stir]") {
    for (const char* name : long_examples) {
        CAPTURE(name);
        const TemporaryDirectory directory;
        const config::Scanner scanner = example_scanner(name);
        const auto records = any_pairs(scanner, 300);
        write_run(directory / "run", records, scanner);
        const Outcome outcome = exported("stir", directory / "run", directory / "out", "--depth-mm 1.5");
        CAPTURE(outcome.out);
        REQUIRE(outcome.status == 0);
        const auto map = read_numbered_map(directory / "out" / "crystal_map.txt");
        REQUIRE(map.size() == scanner.geometry.crystal_count());
        // STIR demands as many detectors in each ring of each layer.
        StirNumber last = map.rbegin()->first;
        for (const auto& [number, place] : map) {
            last.ring = std::max(last.ring, number.ring);
            last.detector = std::max(last.detector, number.detector);
            last.layer = std::max(last.layer, number.layer);
        }
        CHECK(std::size_t{last.ring + 1} * (last.detector + 1) * (last.layer + 1) == map.size());
        const auto events = read_stir_events(directory / "out" / "listmode.clm.safir");
        REQUIRE(events.size() == records.size());
        for (std::size_t i = 0; i < events.size(); ++i) {
            const auto at = [&](std::uint32_t crystal) {
                return config::point_at_depth(config::crystal_place(scanner, crystal), 1.5);
            };
            REQUIRE(distance_of(map.at(events[i].first), at(records[i].crystal_a)) < 2e-4);
            REQUIRE(distance_of(map.at(events[i].second), at(records[i].crystal_b)) < 2e-4);
        }
    }
}

TEST_CASE("export: stir has a template where rings are alike, and no factors of lines elsewhere",
          "[petlm][stir]") {
    const auto check = [](const std::string& name, bool fits, const char* why) {
        CAPTURE(name);
        const TemporaryDirectory directory;
        const config::Scanner scanner = example_scanner(name);
        write_run(directory / "run", any_pairs(scanner, 5), scanner);
        const Outcome outcome = exported("stir", directory / "run", directory / "out");
        REQUIRE(outcome.status == 0);
        CHECK(std::filesystem::exists(directory / "out" / "template.hs") == fits);
        CHECK(std::filesystem::exists(directory / "out" / "lm_to_projdata.par") == fits);
        if (fits) return;
        CHECK_THAT(outcome.out, contains(why));
        const Outcome refused =
            exported("stir", directory / "run", directory / "no", "--attenuation 0,0,0,10,20,0.096");
        CHECK(refused.status == 64);
        CHECK_THAT(refused.out, contains("projection data"));
        CHECK_FALSE(std::filesystem::exists(directory / "no"));
    };
    check("hexagon", true, "");
    check("box", true, "");
    check("unequal-blocks", true, "");
    check("monolithic", false, "4 layers");
    check("phoswich", false, "its rings do not all have as many crystals");
    check("insert", false, "its rings do not all have as many crystals");
}

TEST_CASE("export: records by crystal have a table of crystals beside them", "[petlm]") {
    const TemporaryDirectory directory;
    const config::Scanner scanner = example_scanner("phoswich");
    write_run(directory / "run", any_pairs(scanner, 5), scanner);
    for (const char* format : {"csv", "coinstruct", "hdf5"}) {
        const auto file = directory / (std::string(format) + ".out");
        REQUIRE(exported(format, directory / "run", file).status == 0);
        std::istringstream lines(read_file(directory / (std::string(format) + ".crystals.csv")));
        std::string line;
        REQUIRE(std::getline(lines, line));
        CHECK(line.starts_with("crystal,x,y,z,"));
        for (std::uint32_t crystal = 0; crystal < scanner.geometry.crystal_count(); ++crystal) {
            REQUIRE(std::getline(lines, line));
            const auto values = comma_numbers(line);
            REQUIRE(values.size() == 17);
            REQUIRE(values[0] == crystal);
            REQUIRE(distance_of({values[1], values[2], values[3]},
                                config::crystal_place(scanner, crystal).front_centre_mm) == 0);
            const auto bdm = static_cast<std::uint32_t>(values[14]);
            const auto du = static_cast<std::uint32_t>(values[15]);
            REQUIRE(scanner.geometry.crystal(bdm, du, static_cast<std::uint32_t>(values[16])) == crystal);
        }
        CHECK_FALSE(std::getline(lines, line));
    }
}

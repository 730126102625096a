// STIR's SAFIR list-mode and its companions, read as STIR's sources describe them (CListRecordSAFIR.h,
// DetectorCoordinateMap.h).
#include <cmath>

#include "tests/tools/petlm/support.hpp"
#include "tools/petlm/export/export.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

struct Address {
    std::uint32_t ring = 0;
    std::uint32_t detector = 0;
    auto operator<=>(const Address&) const = default;  // NOLINT(modernize-use-nullptr): none is there
};

struct SafirEvent {
    std::uint64_t time_ms = 0;  ///< of the previous time record
    Address a;
    Address b;
    bool delayed = false;
};

struct Safir {
    std::vector<SafirEvent> events;
    std::vector<std::uint64_t> times;  ///< of all time records
};

Safir read_safir(const std::filesystem::path& file) {
    Bytes data(file);
    const auto signature = data.take<std::array<char, 32>>();
    REQUIRE(std::string(signature.data()) == "SAFIR CListModeData");
    Safir out;
    while (!data.at_end()) {
        const auto record = data.take<std::uint64_t>();
        if (record >> 63U != 0) {
            REQUIRE((record >> 48U & 0x7FFFU) == 0);
            out.times.push_back(record & 0xFFFF'FFFF'FFFFU);
            continue;
        }
        REQUIRE_FALSE(out.times.empty());
        REQUIRE((record >> 48U & 0x3FFFU) == 0);  // layers, reserved
        SafirEvent e;
        e.time_ms = out.times.back();
        e.a = {static_cast<std::uint32_t>(record & 0xFFU),
               static_cast<std::uint32_t>(record >> 16U & 0xFFFFU)};
        e.b = {static_cast<std::uint32_t>(record >> 8U & 0xFFU),
               static_cast<std::uint32_t>(record >> 32U & 0xFFFFU)};
        e.delayed = (record >> 62U & 1U) != 0;
        out.events.push_back(e);
    }
    return out;
}

std::map<Address, config::Vector3> read_map(const std::filesystem::path& file) {
    std::map<Address, config::Vector3> out;
    std::istringstream lines(read_file(file));
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('#')) continue;
        Address address;
        config::Vector3 p{};
        unsigned layer = 1;
        REQUIRE(std::sscanf(line.c_str(), "%u\t%u\t%u\t%lf\t%lf\t%lf", &address.ring, &address.detector,
                            &layer, p.data(), p.data() + 1, p.data() + 2) == 6);
        REQUIRE(layer == 0);
        REQUIRE(out.emplace(address, p).second);
    }
    return out;
}

}  // namespace

TEST_CASE("stir: every event, prompts and delayeds, with the millisecond it was in", "[petlm][stir]") {
    const TemporaryDirectory directory;
    const auto scanner = export_scanner();
    const auto records = point_source(scanner, {8, 5, -3}, 20'000);
    write_run(directory / "run", records);
    const Outcome outcome = exported("stir", directory / "run", directory / "out", "--depth-mm 2.5");
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    const auto safir = read_safir(directory / "out" / "listmode.clm.safir");
    const auto map = read_map(directory / "out" / "crystal_map.txt");
    REQUIRE(map.size() == scanner.geometry.crystal_count());
    REQUIRE(safir.events.size() == records.size());
    const auto is_at = [&](Address address, std::uint32_t crystal) {
        const auto p = config::point_at_depth(config::crystal_place(scanner, crystal), 2.5);
        const auto& q = map.at(address);
        return std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]) < 1e-3;
    };
    for (std::size_t i = 0; i < records.size(); ++i) {
        CAPTURE(i);
        const auto& e = safir.events[i];
        REQUIRE(is_at(e.a, records[i].crystal_a));
        REQUIRE(is_at(e.b, records[i].crystal_b));
        REQUIRE(e.delayed == (records[i].kind == gpu::Kind::delayed));
        REQUIRE(e.time_ms == (records[i].time - run_start) * 125 / 8'000'000'000ULL);
    }
    for (std::size_t i = 1; i < safir.times.size(); ++i)
        REQUIRE(safir.times[i] > safir.times[i - 1]);
    CHECK(safir.times.back() > safir.events.back().time_ms);  // the end of the run
    for (const char* word : {"energies", "TOF"}) {
        CHECK_THAT(outcome.out, contains(word));
        CHECK_THAT(read_file(directory / "out" / "README.txt"), contains(word));
    }
}

TEST_CASE("stir: detectors are numbered from -y towards +x, rings from the lowest z", "[petlm][stir]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", pairs(3));
    REQUIRE(exported("stir", directory / "run", directory / "out").status == 0);
    double angle = -1;
    double z = -1e9;
    for (const auto& [address, p] : read_map(directory / "out" / "crystal_map.txt")) {
        if (address.detector == 0) {
            CHECK(p[2] > z);
            z = p[2];
            angle = -1;
        }
        const double around = std::fmod(std::atan2(p[0], -p[1]) + 2 * M_PI + 1e-6, 2 * M_PI);
        CAPTURE(address.ring, address.detector);
        CHECK(around > angle);
        angle = around;
    }
}

TEST_CASE("stir: template and parameter files name each other and the scanner", "[petlm][stir]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", pairs(3), export_scanner(), 1,
              {{"max_ring_difference", 2}, {"min_module_difference", 3}});
    const auto out = directory / "out";
    CHECK_THAT(exported("stir", directory / "run", out).out, contains("the run's min_module_difference"));
    const auto values = key_values(out / "template.hs", " := ");
    CHECK(values.at("Number of rings") == "24");
    CHECK(values.at("Number of detectors per ring") == "120");
    CHECK(values.at("Inner ring diameter (cm)") == "6.4");
    CHECK(values.at("!matrix size [4]") == "5");
    CHECK(values.at("!matrix size [3]") == "60");
    CHECK(values.at("!matrix size [2]") == "{22,23,24,23,22}");
    // Modules of ten crystals, at least three apart: at least 21 crystals, so at most 39 positions from the
    // middle.
    CHECK(values.at("!matrix size [1]") == "79");
    CHECK(values.at("Distance between rings (cm)") == "0.17");
    CHECK(values.at("minimum ring difference per segment") == "{-2,-1,0,1,2}");
    CHECK(values.at("maximum ring difference per segment") == "{-2,-1,0,1,2}");
    CHECK(values.at("Scanner geometry (BlocksOnCylindrical/Cylindrical/Generic)") == "Generic");
    CHECK(std::filesystem::exists(out / values.at("Name of crystal map")));
    CHECK(std::filesystem::exists(out / values.at("name of data file")));
    write_run(directory / "all", pairs(3));
    REQUIRE(exported("stir", directory / "all", directory / "all-out").status == 0);
    // -58 to 58 of -59 to 60: STIR's projectors also use the neighbours.
    CHECK(key_values(directory / "all-out" / "template.hs", " := ").at("!matrix size [1]") == "117");
    const auto list = key_values(out / "listmode.par", " := ");
    for (const char* key :
         {"listmode data filename", "crystal map filename", "template projection data filename"})
        CHECK(std::filesystem::exists(out / list.at(key)));
    const auto binning = key_values(out / "lm_to_projdata.par", " := ");
    for (const char* key : {"input file", "template_projdata", "frame_definition file"})
        CHECK(std::filesystem::exists(out / binning.at(key)));
}

TEST_CASE("stir: more than 256 rings are refused with the reason", "[petlm][stir]") {
    const TemporaryDirectory directory;
    auto scanner = export_scanner();
    scanner.geometry.modules.z = 8;
    scanner.geometry.bdm_count = 96;
    scanner.geometry.blocks.z = 3;
    scanner.geometry.crystals.z = 11;
    REQUIRE(scanner.geometry.rings() == 264);
    write_run(directory / "run", pairs(3), scanner);
    const Outcome outcome = exported("stir", directory / "run", directory / "out");
    CHECK(outcome.status == 64);
    CHECK_THAT(outcome.out, contains("264 rings") && contains("at most 256"));
    CHECK_FALSE(std::filesystem::exists(directory / "out"));
    CHECK(exported("castor", directory / "run", directory / "castor").status == 0);
}

namespace {

/// A number that tells the pair, whatever the order of its crystals.
double number_of(std::uint32_t a, std::uint32_t b) {
    return std::min(a, b) * 2880.0 + std::max(a, b);
}

}  // namespace

TEST_CASE("stir: the randoms estimate as projection data has each pair in its bin", "[petlm][stir]") {
    const TemporaryDirectory directory;
    const auto scanner = export_scanner();
    const auto records = point_source(scanner, {8, 5, -3}, 100);
    write_run(directory / "run", records, scanner, 1,
              {{"max_ring_difference", 1}, {"min_module_difference", 3}});
    petlm::ExportOptions options;
    options.format = "stir";
    options.target = directory / "run";
    options.output = directory / "out";
    options.randoms = petlm::RandomsPerPair{number_of, nullptr, {}};
    petlm::export_quietly(options);
    const auto values = key_values(options.output / "randoms.hs", " := ");
    CHECK(values.at("name of data file") == "randoms.s");
    CHECK(values.at("!matrix size [4]") == "3");
    CHECK(values.at("!matrix size [1]") == "79");
    const auto places = read_map(options.output / "crystal_map.txt");
    const double depth_mm = 10 * std::stod(values.at("Average depth of interaction (cm)"));
    const auto crystal_of = [&](Address at) {
        // The map starts at another detector than the ring: README.txt has the shift.
        const auto& place = places.at(at);
        for (std::uint32_t crystal = at.ring * 120; crystal < (at.ring + 1) * 120; ++crystal) {
            const auto p = config::point_at_depth(config::crystal_place(scanner, crystal), depth_mm);
            if (std::hypot(p[0] - place[0], p[1] - place[1]) < 0.01) return crystal;
        }
        return UINT32_MAX;
    };
    std::vector<std::uint32_t> crystals(120);
    for (std::uint32_t detector = 0; detector < 120; ++detector)
        crystals[detector] = crystal_of({0, detector});
    Bytes data(options.output / "randoms.s");
    std::set<std::pair<std::uint32_t, std::uint32_t>> met;
    for (int segment = -1; segment <= 1; ++segment) {
        for (int view = 0; view < 60; ++view) {
            for (int axial = 0; axial < 24 - std::abs(segment); ++axial) {
                for (int t = -39; t <= 39; ++t) {
                    // STIR: ring 2 less ring 1 is the segment; det1 = v + floor(t/2), det2 = v + 60 -
                    // ceil(t/2).
                    const int det_1 = (view + static_cast<int>(std::floor(t / 2.0)) + 120) % 120;
                    const int det_2 = (view + 60 - static_cast<int>(std::ceil(t / 2.0)) + 120) % 120;
                    const int ring_1 = segment < 0 ? axial + 1 : axial;
                    const auto a =
                        crystals[static_cast<std::size_t>(det_1)] + 120U * static_cast<unsigned>(ring_1);
                    const auto b = crystals[static_cast<std::size_t>(det_2)] +
                                   120U * static_cast<unsigned>(ring_1 + segment);
                    REQUIRE(data.take<float>() == Approx(number_of(a, b)).epsilon(1e-6));
                    REQUIRE(met.insert(std::minmax(a, b)).second);
                }
            }
        }
    }
    CHECK(data.at_end());
    REQUIRE(exported("stir", directory / "run", directory / "without").status == 0);
    CHECK_FALSE(std::filesystem::exists(directory / "without" / "randoms.hs"));
}

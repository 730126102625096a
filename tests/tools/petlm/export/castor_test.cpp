// CASToR's files, read as its general documentation (3.1.1) describes them.
#include <numbers>
#include <optional>

#include "tests/tools/petlm/support.hpp"
#include "tools/petlm/export/export.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

struct CastorEvent {
    std::uint32_t time_ms = 0;
    std::optional<std::uint8_t> kind;
    std::optional<float> randoms;
    std::optional<float> tof_ps;
    std::uint32_t id1 = 0;
    std::uint32_t id2 = 0;
};

struct Castor {
    std::map<std::string, std::string> header;
    std::vector<CastorEvent> events;
};

Castor read_castor(const std::filesystem::path& header) {
    Castor out;
    out.header = key_values(header, ": ");
    const bool tof = out.header.count("TOF information flag") != 0;
    const bool kind = out.header.count("Coincidence kind flag") != 0;
    const bool randoms = out.header.count("Random correction flag") != 0;
    Bytes data(header.parent_path() / out.header.at("Data filename"));
    const std::uint64_t events = std::stoull(out.header.at("Number of events"));
    REQUIRE(data.size() == events * (12U + (tof ? 4U : 0U) + (randoms ? 4U : 0U) + (kind ? 1U : 0U)));
    for (std::uint64_t i = 0; i < events; ++i) {
        CastorEvent e;
        e.time_ms = data.take<std::uint32_t>();
        if (kind) e.kind = data.take<std::uint8_t>();
        if (randoms) e.randoms = data.take<float>();
        if (tof) e.tof_ps = data.take<float>();
        e.id1 = data.take<std::uint32_t>();
        e.id2 = data.take<std::uint32_t>();
        out.events.push_back(e);
    }
    return out;
}

struct Element {
    config::Vector3 centre;
    config::Vector3 orientation;
};

std::vector<Element> read_lut(const std::filesystem::path& file) {
    std::vector<Element> out;
    for (Bytes data(file); !data.at_end();) {
        Element e{};
        for (double& x : e.centre)
            x = data.take<float>();
        for (double& x : e.orientation)
            x = data.take<float>();
        out.push_back(e);
    }
    return out;
}

void check_events(const Castor& castor, const gpu::RecordVector<gpu::Coincidence>& records, double tick_ps,
                  bool tof, std::optional<std::uint8_t> kind) {
    REQUIRE(castor.events.size() == records.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
        const auto& e = castor.events[i];
        const auto& c = records[i];
        CAPTURE(i);
        REQUIRE(e.time_ms == (c.time - run_start) * 125 / 8'000'000'000ULL);  // ticks of 15.625 ps
        REQUIRE(e.id1 == c.crystal_a);
        REQUIRE(e.id2 == c.crystal_b);
        REQUIRE(e.kind == kind);
        REQUIRE(e.tof_ps.has_value() == tof);
        if (tof) REQUIRE(*e.tof_ps == Approx(-static_cast<double>(c.dt) * tick_ps));
    }
}

}  // namespace

TEST_CASE("castor: every event in prompts and delayeds, in all four layouts", "[petlm][castor]") {
    const TemporaryDirectory directory;
    const auto scanner = export_scanner();
    const auto records = point_source(scanner, {8, 5, -3}, 20'000);
    write_run(directory / "run", records);
    const auto out = directory / "castor";
    for (const bool tof : {false, true}) {
        for (const bool kind : {false, true}) {
            const Outcome outcome = exported(
                "castor", directory / "run", out,
                std::string("--force") + (tof ? " --tof-resolution-ps 250" : "") + (kind ? " --kind" : ""));
            CAPTURE(outcome.out, tof, kind);
            REQUIRE(outcome.status == 0);
            const auto prompts = read_castor(out / "prompts.cdh");
            check_events(prompts, of_kind(records, gpu::Kind::prompt), scanner.tick_ps, tof,
                         kind ? std::optional<std::uint8_t>(0) : std::nullopt);
            check_events(read_castor(out / "delayeds.cdh"), of_kind(records, gpu::Kind::delayed),
                         scanner.tick_ps, tof, kind ? std::optional<std::uint8_t>(4) : std::nullopt);
            CHECK(prompts.header.at("Data mode") == "list-mode");
            CHECK(prompts.header.at("Data type") == "PET");
            CHECK(prompts.header.at("Start time (s)") == "0");
            CHECK(prompts.header.at("Scanner name") == "test_scanner");
            const double end = std::stod(prompts.header.at("Duration (s)"));
            CHECK(end * 1000 > prompts.events.back().time_ms);
            CHECK(end == Approx(static_cast<double>(records.back().time + 1000 - run_start) * 15.625e-12)
                             .margin(0.00101));
            if (tof) {
                CHECK(prompts.header.at("TOF resolution (ps)") == "250");
                CHECK(std::stod(prompts.header.at("List TOF measurement range (ps)")) == 2 * 300 * 15.625);
            }
            CHECK_THAT(read_file(out / "README.txt"), contains("does not hold energies"));
            CHECK_THAT(outcome.out, contains("does not hold energies"));
            CHECK((outcome.out.find("no TOF was written") == std::string::npos) == tof);
        }
    }
}

TEST_CASE("castor: each prompt has the randoms of its pair, before its TOF", "[petlm][castor]") {
    const TemporaryDirectory directory;
    const auto scanner = export_scanner();
    const auto records = point_source(scanner, {8, 5, -3}, 2'000);
    write_run(directory / "run", records);
    petlm::ExportOptions options;
    options.format = "castor";
    options.target = directory / "run";
    options.output = directory / "out";
    options.tof_resolution_ps = 250;
    options.event_kind = true;
    options.randoms =
        petlm::RandomsPerPair{[](std::uint32_t a, std::uint32_t b) { return 1e-6 * (a + b); }, nullptr, {}};
    petlm::export_quietly(options);
    const auto prompts = read_castor(options.output / "prompts.cdh");
    check_events(prompts, of_kind(records, gpu::Kind::prompt), scanner.tick_ps, true, std::uint8_t{0});
    const double seconds = std::stod(prompts.header.at("Duration (s)"));
    for (const auto& e : prompts.events) {
        REQUIRE(e.randoms.value() == Approx(1e-6 * (e.id1 + e.id2) / seconds));
    }
    const auto delayeds = read_castor(options.output / "delayeds.cdh");
    check_events(delayeds, of_kind(records, gpu::Kind::delayed), scanner.tick_ps, true, std::uint8_t{4});
    CHECK_FALSE(delayeds.events.at(0).randoms.has_value());
    CHECK(prompts.header.at("Calibration factor") == "1");
}

TEST_CASE("castor: TOF points to the side of the source", "[petlm][castor]") {
    const TemporaryDirectory directory;
    const auto scanner = export_scanner();
    const config::Vector3 where = {9, -6, 4};
    write_run(directory / "run", point_source(scanner, where, 30'000));
    REQUIRE(exported("castor", directory / "run", directory / "out", "--tof-resolution-ps 200 --depth-mm 0")
                .status == 0);
    const auto lut = read_lut(directory / "out" / "test_scanner.lut");
    for (const char* file : {"prompts.cdh", "delayeds.cdh"}) {
        config::Vector3 mean{};
        const auto castor = read_castor(directory / "out" / file);
        for (const auto& e : castor.events) {
            // CASToR: half the length of the line, plus c/2 times TOF, from element 1 towards element 2.
            const auto front = [&](std::uint32_t id, std::size_t axis) {
                return lut[id].centre[axis] -
                       lut[id].orientation[axis] * scanner.dimensions.crystal_length_mm / 2;
            };
            config::Vector3 line{};
            for (std::size_t axis = 0; axis < 3; ++axis)
                line[axis] = front(e.id2, axis) - front(e.id1, axis);
            const double length = std::hypot(line[0], line[1], line[2]);
            const double along = 0.5 + e.tof_ps.value() * light_mm_per_ps / 2 / length;
            for (std::size_t axis = 0; axis < 3; ++axis) {
                mean[axis] +=
                    (front(e.id1, axis) + along * line[axis]) / static_cast<double>(castor.events.size());
            }
        }
        CAPTURE(file);
        for (std::size_t axis = 0; axis < 3; ++axis)
            CHECK(mean[axis] == Approx(where[axis]).margin(0.15));
    }
}

TEST_CASE("castor: the look-up table has centres and outward directions of the description",
          "[petlm][castor]") {
    const TemporaryDirectory directory;
    const auto scanner = export_scanner();
    const auto& d = scanner.dimensions;
    write_run(directory / "run", pairs(5), scanner, 1,
              {{"min_module_difference", 3}, {"max_ring_difference", 5}});
    REQUIRE(exported("castor", directory / "run", directory / "out").status == 0);
    const auto lut = read_lut(directory / "out" / "test_scanner.lut");
    REQUIRE(lut.size() == scanner.geometry.crystal_count());
    // Written out from docs/reference/geometry.md: 12 modules of 2 x 5 crystals around, 2 x 3 x 4 rings.
    for (std::uint32_t crystal = 0; crystal < lut.size(); ++crystal) {
        const std::uint32_t in_ring = crystal % 120;
        const std::uint32_t ring = crystal / 120;
        const std::uint32_t module = in_ring / 10;
        const std::uint32_t gaps = ring % 12 / 4 + ring / 12 * 2;
        const std::uint32_t module_gaps = ring / 12;
        const double angle = 2 * std::numbers::pi * module / 12;
        const double y = (in_ring % 10) * 1.6 + (in_ring % 10 >= 5 ? 0.4 : 0) - (9 * 1.6 + 0.4) / 2;
        const double z = ring * 1.7 + gaps * 0.5 + module_gaps * 1.0 - (23 * 1.7 + 4 * 0.5 + 1) / 2;
        const double r = d.ring_radius_mm + 6;
        CAPTURE(crystal);
        REQUIRE(lut[crystal].centre[0] == Approx(r * std::cos(angle) - y * std::sin(angle)).margin(1e-5));
        REQUIRE(lut[crystal].centre[1] == Approx(r * std::sin(angle) + y * std::cos(angle)).margin(1e-5));
        REQUIRE(lut[crystal].centre[2] == Approx(z).margin(1e-5));
        REQUIRE(lut[crystal].orientation[0] == Approx(std::cos(angle)).margin(1e-6));
        REQUIRE(lut[crystal].orientation[1] == Approx(std::sin(angle)).margin(1e-6));
        REQUIRE(lut[crystal].orientation[2] == 0);
    }
    const auto hscan = key_values(directory / "out" / "test_scanner.hscan", ": ");
    CHECK(hscan.at("scanner name") == "test_scanner");
    CHECK(hscan.at("modality") == "PET");
    CHECK(hscan.at("number of elements") == "2880");
    CHECK(hscan.at("number of crystals in layer") == "2880");
    CHECK(hscan.at("number of layers") == "1");
    CHECK(hscan.at("crystals size depth") == "12");
    // Modules are 30 degrees apart: a difference of 2 is excluded, 3 is accepted.
    CHECK(std::stod(hscan.at("min angle difference")) == 75);
    const auto cdh = key_values(directory / "out" / "prompts.cdh", ": ");
    // Five rings apart across the gap between the modules and one between blocks.
    CHECK(std::stod(cdh.at("Maximum axial difference mm")) == Approx(5 * 1.7 + 1 + 0.5).margin(0.002));
}

TEST_CASE("castor, stir: the one depth of interaction moves the lines of the prompts least",
          "[petlm][castor][stir]") {
    const TemporaryDirectory directory;
    const auto scanner = export_scanner();
    const auto records = point_source(scanner, {14, 3, -2}, 3'000);
    write_run(directory / "run", records);
    const config::LineGeometry lines(scanner, config::DepthOfInteraction(scanner.dimensions));
    // Squares of the distances of the ends from where they are by absorption, across their line.
    const auto moved = [&](double depth_mm) {
        double sum = 0;
        for (const auto& c : of_kind(records, gpu::Kind::prompt)) {
            const config::LineEnds ends = lines.ends(c.crystal_a, c.crystal_b);
            const auto a = config::point_at_depth(lines.places[c.crystal_a], depth_mm);
            const auto b = config::point_at_depth(lines.places[c.crystal_b], depth_mm);
            double length = 0;
            for (std::size_t i = 0; i < 3; ++i)
                length += (ends.b[i] - ends.a[i]) * (ends.b[i] - ends.a[i]);
            for (const auto& [to, from] : {std::pair{a, ends.a}, std::pair{b, ends.b}}) {
                double square = 0;
                double along = 0;
                for (std::size_t i = 0; i < 3; ++i) {
                    square += (to[i] - from[i]) * (to[i] - from[i]);
                    along += (to[i] - from[i]) * (ends.b[i] - ends.a[i]);
                }
                sum += square - along * along / length;
            }
        }
        return sum;
    };
    REQUIRE(exported("castor", directory / "run", directory / "out").status == 0);
    const double depth_mm =
        std::stod(key_values(directory / "out" / "test_scanner.hscan", ": ").at("mean depth of interaction"));
    CHECK(moved(depth_mm) < moved(depth_mm + 0.02));
    CHECK(moved(depth_mm) < moved(depth_mm - 0.02));
    CHECK(moved(depth_mm) < 0.5 * moved(lines.depth.typical_mm()));
    REQUIRE(exported("stir", directory / "run", directory / "stir").status == 0);
    CHECK(std::stod(key_values(directory / "stir" / "template.hs", " := ")
                        .at("Average depth of interaction (cm)")) == Approx(depth_mm / 10).epsilon(1e-3));
    REQUIRE(exported("castor", directory / "run", directory / "front", "--depth-mm 0").status == 0);
    CHECK(key_values(directory / "front" / "test_scanner.hscan", ": ").at("mean depth of interaction") ==
          "0");
}

TEST_CASE(
    "castor: a run of prompts makes one data file, and with --force, delayeds of an earlier export are "
    "removed",
    "[petlm][castor]") {
    const TemporaryDirectory directory;
    const auto records = point_source(export_scanner(), {0, 0, 0}, 100);
    write_run(directory / "both", records);
    write_run(directory / "prompts", of_kind(records, gpu::Kind::prompt), export_scanner(), 1,
              {{"delay_ticks", nullptr}});
    const auto out = directory / "out";
    REQUIRE(exported("castor", directory / "both", out).status == 0);
    CHECK(names_in(out) == std::set<std::string>{"README.txt", "delayeds.cdf", "delayeds.cdh", "prompts.cdf",
                                                 "prompts.cdh", "test_scanner.hscan", "test_scanner.lut"});
    REQUIRE(exported("castor", directory / "prompts", out, "--force").status == 0);
    CHECK(names_in(out) == std::set<std::string>{"README.txt", "prompts.cdf", "prompts.cdh",
                                                 "test_scanner.hscan", "test_scanner.lut"});
}

TEST_CASE("castor: a run without events, and one that is too long", "[petlm][castor]") {
    const TemporaryDirectory directory;
    write_run(directory / "empty", {});
    REQUIRE(exported("castor", directory / "empty", directory / "out").status == 0);
    CHECK(read_castor(directory / "out" / "prompts.cdh").events.empty());
    gpu::Coincidence late;
    late.time = std::uint64_t{1} << 62U;
    late.crystal_b = 1000;
    write_run(directory / "long", {late});
    // The run started at tick 5e9.
    const Outcome outcome = exported("castor", directory / "long", directory / "long-out");
    CHECK(outcome.status == 1);
    CHECK_THAT(outcome.out, contains("castor counts 32-bit milliseconds"));
    CHECK_FALSE(std::filesystem::exists(directory / "long-out"));
}

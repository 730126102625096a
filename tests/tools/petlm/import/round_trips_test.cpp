// Our own exports, read back: exact where the format holds it, and what is lost elsewhere.
#include <hdf5.h>

#include <cstring>
#include <sstream>

#include "tests/tools/petlm/import/support.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

template <class Record>
void check_round_trip(const std::string& format, daemon::RecordKind kind,
                      const gpu::RecordVector<Record>& records) {
    const TemporaryDirectory directory;
    const auto file = directory / "a.plm";
    const auto out = directory / ("a." + format);
    const auto scanner = scanner_file(directory);
    write_records(file, kind, records);
    REQUIRE(exported(format, file, out).status == 0);
    const Outcome outcome = imported(format, out, scanner, directory / "b.plm");
    CAPTURE(format, daemon::name_of(kind), outcome.out);
    REQUIRE(outcome.status == 0);
    CHECK(same_bytes(read_records<Record>(directory / "b.plm", kind), records));
    CHECK(run_petlm("verify" + quoted(directory / "b.plm")).status == 0);
}

}  // namespace

TEST_CASE("import: records of every kind come back from csv and hdf5 as they were", "[petlm][import]") {
    const std::uint32_t crystals = export_scanner().geometry.crystal_count();
    for (const std::string format : {"csv", "hdf5"}) {
        RandomRecords random(1, crystals);
        const auto singles =
            random.in_order(70'000, [](auto& r, std::uint64_t time) { return r.single(time); });
        check_round_trip(format, daemon::RecordKind::singles, singles);
        check_round_trip(format, daemon::RecordKind::coincidences,
                         random.in_order(5000, [](auto& r, std::uint64_t time) { return r.pair(time); }));
        check_round_trip(format, daemon::RecordKind::triples,
                         random.in_order(2000, [](auto& r, std::uint64_t time) { return r.triple(time); }));
        check_round_trip(format, daemon::RecordKind::coincidences, gpu::RecordVector<gpu::Coincidence>());
    }
    RandomRecords random(2, crystals);
    check_round_trip("csv", daemon::RecordKind::tags,
                     random.in_order(2000, [](auto& r, std::uint64_t time) { return r.tag(time); }));
}

TEST_CASE("import: triples of equal pairs stay pair by pair", "[petlm][import]") {
    const gpu::Coincidence pair{100, 5, 1, 2, 511, 511, gpu::Kind::prompt};
    const gpu::RecordVector<gpu::Triple> twice = {{pair, 1, 3, 1274, gpu::ThirdPhoton::coincident},
                                                  {pair, 9, 4, 1274, gpu::ThirdPhoton::coincident},
                                                  {pair, 1, 3, 1274, gpu::ThirdPhoton::coincident},
                                                  {pair, 9, 4, 1274, gpu::ThirdPhoton::coincident}};
    check_round_trip("csv", daemon::RecordKind::triples, twice);
    check_round_trip("hdf5", daemon::RecordKind::triples, twice);
}

TEST_CASE("import: hdf5 of a run has its scanner and its coverage", "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto records = point_source(export_scanner(), {1, 2, 3}, 500);
    write_run(directory / "run", records);
    REQUIRE(exported("hdf5", directory / "run", directory / "a.h5").status == 0);
    const Outcome outcome = run_petlm("import --format hdf5" + quoted(directory / "a.h5") + "--output" +
                                      quoted(directory / "again"));
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    CHECK(same(read_coincidences(directory / "again" / "coincidences.plm"), records));
    CHECK(run_petlm("verify" + quoted(directory / "again")).status == 0);
    const auto run = nlohmann::json::parse(read_file(directory / "again" / "run.json"));
    const auto original = nlohmann::json::parse(read_file(directory / "run" / "run.json"));
    CHECK(run["scanner"] == original["scanner"]);
    CHECK(run["configuration"] == original["configuration"]);
    CHECK(run["start_ticks"] == original["start_ticks"]);
    CHECK(run["stop_ticks"] == original["stop_ticks"]);
    CHECK(run["coverage"]["rules"]["coincidence"]["window_ticks"] == 300);
    CHECK(run["imported"]["format"] == "hdf5");
    // It is a run for every other command.
    CHECK(exported("stir", directory / "again", directory / "stir").status == 0);
}

TEST_CASE("import: hdf5 that another program made of a file names that file", "[petlm][import]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", point_source(export_scanner(), {1, 2, 3}, 20));
    const auto file = directory / "a.h5";
    REQUIRE(exported("hdf5", directory / "run", file).status == 0);
    const auto with = [&](const std::string& said) {
        const hid_t opened = H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
        REQUIRE(opened >= 0);
        if (H5Aexists(opened, "imported") > 0) REQUIRE(H5Adelete(opened, "imported") >= 0);
        const hid_t type = H5Tcopy(H5T_C_S1);
        H5Tset_size(type, said.size());
        const hid_t space = H5Screate(H5S_SCALAR);
        const hid_t attribute = H5Acreate2(opened, "imported", type, space, H5P_DEFAULT, H5P_DEFAULT);
        REQUIRE(H5Awrite(attribute, type, said.data()) >= 0);
        H5Aclose(attribute);
        H5Sclose(space);
        H5Tclose(type);
        REQUIRE(H5Fclose(opened) >= 0);
        return run_petlm("import --format hdf5" + quoted(file) + "--force -o" + quoted(directory / "out"));
    };
    for (const std::string said : {R"({"format":"gate","version":"10","from":["s.root"]})",
                                   R"({"format":"petsird","from":["a.petsird"]})"}) {
        const Outcome outcome = with(said);
        CAPTURE(said, outcome.out);
        REQUIRE(outcome.status == 0);
        const auto expected = nlohmann::json::parse(said);
        CHECK(nlohmann::json::parse(read_file(directory / "out" / "run.json"))["imported"] == expected);
        CHECK(daemon::ListModeReader(directory / "out" / "coincidences.plm").description()["imported"] ==
              expected);
    }
    for (const std::string said : {"gate", "[]", R"({"format":"gate"})", R"({"format":"","from":["a"]})",
                                   R"({"format":"gate","from":[]})", R"({"format":"gate","from":[1]})",
                                   R"({"format":"gate","version":9,"from":["a"]})"}) {
        const Outcome outcome = with(said);
        CAPTURE(said, outcome.out);
        CHECK(outcome.status == 1);
        CHECK_THAT(outcome.out, contains("attribute imported: expected"));
    }
}

TEST_CASE("import: castor has what it holds, and says what it does not", "[petlm][import]") {
    const TemporaryDirectory directory;
    const config::Scanner scanner = export_scanner();
    const auto file = scanner_file(directory);
    const auto records = point_source(scanner, {1, 2, 3}, 3000);
    write_run(directory / "run", records);
    REQUIRE(exported("castor", directory / "run", directory / "castor", "--tof-resolution-ps 400 --kind")
                .status == 0);
    const Outcome outcome =
        imported("castor", directory / "castor" / "prompts.cdh", file, directory / "a.plm",
                 "--delayeds" + quoted(directory / "castor" / "delayeds.cdh"));
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    CHECK(run_petlm("verify" + quoted(directory / "a.plm")).status == 0);
    const double ticks_per_ms = 1e9 / scanner.tick_ps;
    auto expected = records;
    for (auto& c : expected) {
        c.time = static_cast<std::uint64_t>(
            std::floor(static_cast<double>(c.time - run_start) / ticks_per_ms) * ticks_per_ms);
        c.energy_a = c.energy_b = 0;
        if (c.dt == 0 && c.crystal_a > c.crystal_b) std::swap(c.crystal_a, c.crystal_b);
    }
    std::sort(expected.begin(), expected.end(),
              [](const auto& a, const auto& b) { return !daemon::in_order(b, a); });
    CHECK(same(read_coincidences(directory / "a.plm"), expected));
    const auto coverage = coverage_in(directory / "a.plm");
    CHECK_THAT(coverage["unknown"].dump(), contains("energies") && contains("within a millisecond") &&
                                               contains("the time of day") &&
                                               !contains("time between the photons"));
    CHECK(coverage["intervals"].size() == 1);
    CHECK(coverage["intervals"][0][0] == 0);

    // By the places in the look-up table, the numbers are the same.
    const auto lut = directory / "castor" / "test_scanner.lut";
    REQUIRE(imported("castor", directory / "castor" / "prompts.cdh", file, directory / "b.plm",
                     "--crystals" + quoted(lut))
                .status == 0);
    CHECK(same(read_coincidences(directory / "b.plm"), of_kind(expected, gpu::Kind::prompt)));
    // A table of another scanner is noticed.
    config::Scanner other = scanner;
    other.dimensions.ring_radius_mm = 90;
    write_file(directory / "other.json", config::to_json(other).dump());
    const Outcome wrong = imported("castor", directory / "castor" / "prompts.cdh", directory / "other.json",
                                   directory / "c.plm", "--crystals" + quoted(lut));
    CHECK(wrong.status == 1);
    CHECK_THAT(wrong.out, contains("is in no crystal of the scanner"));
}

TEST_CASE("import: safir has what it holds, and says what it does not", "[petlm][import]") {
    const TemporaryDirectory directory;
    const config::Scanner scanner = export_scanner();
    const auto file = scanner_file(directory);
    const auto records = point_source(scanner, {1, 2, 3}, 3000);
    write_run(directory / "run", records);
    REQUIRE(exported("stir", directory / "run", directory / "stir").status == 0);
    const auto data = directory / "stir" / "listmode.clm.safir";
    const Outcome outcome = imported("safir", data, file, directory / "a.plm");
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    CHECK(run_petlm("verify" + quoted(directory / "a.plm")).status == 0);
    const double ticks_per_ms = 1e9 / scanner.tick_ps;
    auto expected = records;
    for (auto& c : expected) {
        c.time = static_cast<std::uint64_t>(
            std::floor(static_cast<double>(c.time - run_start) / ticks_per_ms) * ticks_per_ms);
        c.energy_a = c.energy_b = 0;
        c.dt = 0;
        if (c.crystal_a > c.crystal_b) std::swap(c.crystal_a, c.crystal_b);
    }
    std::sort(expected.begin(), expected.end(),
              [](const auto& a, const auto& b) { return !daemon::in_order(b, a); });
    CHECK(same(read_coincidences(directory / "a.plm"), expected));
    CHECK_THAT(coverage_in(directory / "a.plm")["unknown"].dump(),
               contains("energies") && contains("time between the photons") && contains("when its records"));
    REQUIRE(imported("safir", data, file, directory / "b.plm",
                     "--crystals" + quoted(directory / "stir" / "crystal_map.txt"))
                .status == 0);
    CHECK(same(read_coincidences(directory / "b.plm"), expected));

    // Other scanners of the format name themselves in the signature, and one has layers of three bits.
    using Kind = std::pair<std::string, unsigned>;
    const auto [name, layer_bits] = GENERATE(Kind{"SAFIR", 4}, Kind{"MUPET", 4}, Kind{"NeuroLF", 3});
    const std::uint64_t layers = (std::uint64_t{1} << layer_bits) - 1;
    std::istringstream map(read_file(directory / "stir" / "crystal_map.txt"));
    std::ostringstream layered;
    for (std::string line; std::getline(map, line);) {
        std::istringstream fields(line);
        std::uint64_t ring = 0;
        std::string detector;
        std::string layer;
        std::string place;
        if (fields >> ring >> detector >> layer && std::getline(fields, place))
            layered << ring << ' ' << detector << ' ' << (ring & layers) << place << '\n';
    }
    write_file(directory / "layered.txt", layered.str());
    std::string bytes = read_file(data);
    const std::string signature = name + " CListModeData" + '\0' + "of this or that";
    bytes.replace(0, 32, (signature + std::string(32, '?')).substr(0, 32));
    for (std::size_t at = 32; at < bytes.size(); at += 8) {
        std::uint64_t record = 0;
        std::memcpy(&record, bytes.data() + at, 8);
        if (record >> 63U != 0) continue;
        record |= (record & layers) << 48U | (record >> 8U & layers) << (48U + layer_bits);
        std::memcpy(bytes.data() + at, &record, 8);
    }
    write_file(directory / "layered.safir", bytes);
    const Outcome named = imported("safir", directory / "layered.safir", file, directory / "c.plm",
                                   "--crystals" + quoted(directory / "layered.txt"));
    INFO(named.out);
    REQUIRE(named.status == 0);
    CHECK(same(read_coincidences(directory / "c.plm"), expected));
}

TEST_CASE("import: petlm resort finds the pairs of imported singles", "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto file = scanner_file(directory);
    const auto pairs = point_source(export_scanner(), {1, 2, 3}, 900);
    gpu::RecordVector<gpu::Single> singles;
    for (const auto& c : of_kind(pairs, gpu::Kind::prompt)) {
        singles.push_back({c.time, c.crystal_a, c.energy_a});
        singles.push_back({c.time + c.dt, c.crystal_b, c.energy_b});
    }
    write_records(directory / "s.plm", daemon::RecordKind::singles, singles);
    REQUIRE(exported("csv", directory / "s.plm", directory / "s.csv").status == 0);
    const Outcome outcome = imported("csv", directory / "s.csv", file, directory / "run");
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    CHECK(run_petlm("verify" + quoted(directory / "run")).status == 0);
    const Outcome unknown =
        run_petlm("resort" + quoted(directory / "run") + "-o" + quoted(directory / "no.plm"));
    CHECK(unknown.status == 64);
    CHECK_THAT(unknown.out, contains("--window-ticks"));
    const Outcome found = run_petlm("resort" + quoted(directory / "run") +
                                    "--window-ticks 300 --backend cpu -o" + quoted(directory / "sorted"));
    CAPTURE(found.out);
    REQUIRE(found.status == 0);
    CHECK(same(read_coincidences(directory / "sorted" / "coincidences.plm"),
               of_kind(pairs, gpu::Kind::prompt)));
    CHECK(run_petlm("verify" + quoted(directory / "sorted")).status == 0);
    const auto sorted = coverage_in(directory / "sorted" / "coincidences.plm");
    CHECK(sorted["rules"]["coincidence"]["window_ticks"] == 300);
    CHECK_THAT(sorted["unknown"].dump(),
               contains("the energy window of its singles") && !contains("the rules"));
}

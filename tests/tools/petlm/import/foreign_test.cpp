// Files that other programs write, made here byte by byte from the documentation of their formats.
#include "tests/tools/petlm/import/support.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

constexpr double tick_ps = 15.625;  // of export_scanner()

/// Channel 1000 + 2 n is crystal n.
std::filesystem::path channel_table(const TemporaryDirectory& directory) {
    std::string text = "crystal,number_in_file\n";
    for (std::uint32_t crystal = 0; crystal < export_scanner().geometry.crystal_count(); ++crystal)
        text += std::to_string(crystal) + "," + std::to_string(1000 + 2 * crystal) + "\n";
    auto file = directory / "channels.csv";
    write_file(file, text);
    return file;
}

struct PetsysSingle {
    std::int64_t ps;
    float energy;
    std::int32_t channel;
};

std::string text_of(const PetsysSingle& s) {
    return std::to_string(s.ps) + "\t" + std::to_string(s.energy) + "\t" + std::to_string(s.channel) + "\n";
}

void put(Packed& out, const PetsysSingle& s) {
    out.put(s.ps, s.energy, s.channel);
}

/// What an import makes of a hit, at 8 keV for a unit.
gpu::Single imported_hit(const PetsysSingle& s) {
    return {static_cast<std::uint64_t>(std::llround(static_cast<double>(s.ps) / tick_ps)),
            static_cast<std::uint32_t>(s.channel - 1000) / 2, s.energy * 8};
}

gpu::Single imported_photon(const std::vector<PetsysSingle>& hits) {
    gpu::Single photon = imported_hit(hits.front());
    for (std::size_t i = 1; i < hits.size(); ++i)
        photon.energy += imported_hit(hits[i]).energy;
    return photon;
}

}  // namespace

TEST_CASE("import: columns of other tables, with their units", "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto scanner = scanner_file(directory);
    write_file(directory / "a.csv", "id;E;t\n5;0.511;1.0\n7;0.6615;0.25\n\n3;0;1.0000000000000000001e0\n");
    const Outcome singles = imported("csv", directory / "a.csv", scanner, directory / "a.plm",
                                     "--columns time=t:ns,crystal=id,energy=E:MeV");
    CAPTURE(singles.out);
    REQUIRE(singles.status == 0);
    CHECK(same_bytes(read_records<gpu::Single>(directory / "a.plm", daemon::RecordKind::singles),
                     {{16, 7, 661.5F}, {64, 3, 0}, {64, 5, 511}}));

    // Without names, with numbers of other software.
    write_file(directory / "n.csv", "100,1002,2,1000\n200,1004,-3,1002\n");
    const Outcome pairs = imported(
        "csv", directory / "n.csv", scanner, directory / "n.plm",
        "--columns 'time=#1,crystal_a=#2,dt=#3,crystal_b=#4' --crystals" + quoted(channel_table(directory)));
    CAPTURE(pairs.out);
    REQUIRE(pairs.status == 0);
    CHECK(same(read_coincidences(directory / "n.plm"),
               {{100, 2, 1, 0, 0, 0, gpu::Kind::prompt}, {197, 3, 1, 2, 0, 0, gpu::Kind::prompt}}));
    CHECK_THAT(coverage_in(directory / "n.plm")["unknown"].dump(), contains("energies"));

    // Both times, and delayeds in another file.
    write_file(directory / "p.csv", "t1\tt2\ta\tb\n64e-9\t1e-9\t3\t4\n");
    write_file(directory / "d.csv", "t1\tt2\ta\tb\n0.5e-9\t0.5e-9\t9\t8\n");
    REQUIRE(imported("csv", directory / "p.csv", scanner, directory / "p.plm",
                     "--columns time_a=t1:s,time_b=t2:s,crystal_a=a,crystal_b=b --delayeds" +
                         quoted(directory / "d.csv"))
                .status == 0);
    CHECK(same(read_coincidences(directory / "p.plm"),
               {{32, 0, 8, 9, 0, 0, gpu::Kind::delayed}, {64, 4032, 4, 3, 0, 0, gpu::Kind::prompt}}));
}

TEST_CASE("import: singles, groups and coincidences of petsys, binary and text", "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto scanner = scanner_file(directory);
    const std::string how = "--kev-per-unit 8 --crystals" + quoted(channel_table(directory));
    RandomRecords random(3, export_scanner().geometry.crystal_count());
    const auto hit = [&] {
        return PetsysSingle{static_cast<std::int64_t>(random.below(1'000'000)),
                            static_cast<float>(random.below(1000)) / 8,
                            static_cast<std::int32_t>(1000 + 2 * random.crystal())};
    };
    std::array<Packed, 5> bytes;
    std::array<std::string, 5> text;
    gpu::RecordVector<gpu::Single> singles;
    gpu::RecordVector<gpu::Single> photons;
    gpu::RecordVector<gpu::Coincidence> pairs;
    using Count = std::uint8_t;
    const auto count = [](unsigned n) { return std::to_string(n) + "\t"; };
    const auto line = [](std::string columns) { return columns.substr(0, columns.size() - 1) + "\n"; };
    for (unsigned i = 0; i < 500; ++i) {
        const PetsysSingle one = hit();
        put(bytes[0], one);
        text[0] += text_of(one);
        singles.push_back(imported_hit(one));
        // Photons of one to three hits: time and crystal of the first, and the energies of all.
        const std::array<unsigned, 2> hits{1 + static_cast<unsigned>(random.below(3)),
                                           1 + static_cast<unsigned>(random.below(3))};
        std::array<std::vector<PetsysSingle>, 2> of;
        for (unsigned photon = 0; photon < 2; ++photon)
            for (unsigned j = 0; j < hits[photon]; ++j)
                of[photon].push_back(hit());
        bytes[2].put(static_cast<Count>(hits[0]));
        text[2] += std::to_string(hits[0]) + "\n";
        for (unsigned j = 0; j < hits[0]; ++j) {
            bytes[1].put(static_cast<Count>(hits[0]), static_cast<Count>(j));
            put(bytes[1], of[0][j]);
            put(bytes[2], of[0][j]);
            text[1] += count(hits[0]) + count(j) + text_of(of[0][j]);
            text[2] += text_of(of[0][j]);
        }
        photons.push_back(imported_photon(of[0]));
        bytes[4].put(static_cast<Count>(hits[0]), static_cast<Count>(hits[1]));
        text[4] += line(count(hits[0]) + count(hits[1]));
        for (const auto& photon : of)
            for (const PetsysSingle& each : photon) {
                put(bytes[4], each);
                text[4] += text_of(each);
            }
        for (unsigned m = 0; m < hits[0]; ++m)
            for (unsigned n = 0; n < hits[1]; ++n) {
                if (m != 0 && n != 0) continue;
                bytes[3].put(static_cast<Count>(hits[0]), static_cast<Count>(m));
                put(bytes[3], of[0][m]);
                bytes[3].put(static_cast<Count>(hits[1]), static_cast<Count>(n));
                put(bytes[3], of[1][n]);
                std::string first = text_of(of[0][m]);
                first.back() = '\t';
                text[3] += count(hits[0]) + count(m) + first + count(hits[1]) + count(n) + text_of(of[1][n]);
            }
        gpu::Single a = imported_photon(of[0]);
        gpu::Single b = imported_photon(of[1]);
        if (!daemon::in_order(a, b)) std::swap(a, b);
        pairs.push_back({a.time, static_cast<std::uint32_t>(b.time - a.time), a.crystal, b.crystal, a.energy,
                         b.energy, gpu::Kind::prompt});
    }
    const auto sort = [](auto& records) {
        std::sort(records.begin(), records.end(),
                  [](const auto& a, const auto& b) { return !daemon::in_order(b, a); });
    };
    sort(singles);
    sort(photons);
    sort(pairs);
    const std::array<std::string, 5> kinds{"singles", "groups", "groups-compact", "coincidences",
                                           "coincidences-compact"};
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        write_file(directory / (kinds[i] + ".ldat"), bytes[i].bytes());
        write_file(directory / (kinds[i] + ".dat"), text[i]);
        for (const std::string suffix : {".ldat", ".dat"}) {
            const auto out = directory / (kinds[i] + suffix + ".plm");
            const std::string stated = suffix == ".ldat" ? " --records " + kinds[i] : "";
            const Outcome outcome =
                imported("petsys", directory / (kinds[i] + suffix), scanner, out, how + stated);
            CAPTURE(kinds[i], suffix, outcome.out);
            REQUIRE(outcome.status == 0);
            if (i < 3) {
                CHECK(same_bytes(read_records<gpu::Single>(out, daemon::RecordKind::singles),
                                 i == 0 ? singles : photons));
            } else {
                CHECK(same(read_coincidences(out), pairs));
            }
            if (i != 0) CHECK_THAT(outcome.out, contains("further hits"));
        }
    }
}

TEST_CASE("import: hits of petsys below 0 and of channels without a crystal are left out",
          "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto scanner = scanner_file(directory);
    const auto with = [&](const std::string& text, const std::string& out) {
        write_file(directory / "a.dat", text);
        Outcome outcome = imported("petsys", directory / "a.dat", scanner, directory / out,
                                   "--kev-per-unit 1 --crystals" + quoted(channel_table(directory)));
        CAPTURE(text, outcome.out);
        REQUIRE(outcome.status == 0);
        return outcome.out;
    };
    using Singles = gpu::RecordVector<gpu::Single>;
    const auto singles = [&](const char* name) {
        return read_records<gpu::Single>(directory / name, daemon::RecordKind::singles);
    };
    const std::string out =
        with("1000\t5\t1002\n2000\t-0.5\t1004\n3000\t6\t7\n4000\t6\t8\n5000\t6\t-1\n", "s.plm");
    CHECK_THAT(out, contains("3 hits were left out, as --crystals does not have their channels, the first of "
                             "them channel 7") &&
                        contains("1 hits were left out, as their energies are below 0"));
    CHECK(same_bytes(singles("s.plm"), Singles{{64, 1, 5}}));
    // The first hit of a photon without a crystal: the others are the photon.
    with("3\t0\t1000\t5\t7\n3\t1\t2000\t4\t1002\n3\t2\t3000\t2\t1004\n1\t0\t4000\t2\t7\n", "g.plm");
    CHECK(same_bytes(singles("g.plm"), Singles{{128, 1, 6}}));
    // A pair needs both photons.
    const std::string pairs =
        with("1\t1\n1000\t5\t1002\n1000\t5\t7\n2\t1\n1000\t5\t7\n1000\t5\t1002\n1000\t5\t1004\n", "c.plm");
    CHECK_THAT(pairs, contains("1 pairs were left out"));
    CHECK(same(read_coincidences(directory / "c.plm"), {{64, 0, 1, 2, 5, 5, gpu::Kind::prompt}}));
}

TEST_CASE("import: bad files are refused, and leave nothing behind", "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto scanner = scanner_file(directory);
    const auto channels = channel_table(directory);
    write_file(directory / "map.txt", "0\t0\t0\t0.0\t0.0\t0.0\n");
    const auto names = names_in(directory.path());
    const auto refused = [&](const std::string& format, const std::string& name, const std::string& content,
                             const std::string& options, const std::string& expected, int status = 1) {
        write_file(directory / name, content);
        for (const char* output : {"out.plm", "out"}) {
            const Outcome outcome = imported(format, directory / name, scanner, directory / output, options);
            CAPTURE(format, content.substr(0, 200), options, outcome.out);
            CHECK(outcome.status == status);
            CHECK_THAT(outcome.out, contains(expected));
        }
        std::filesystem::remove(directory / name);
        CHECK(names_in(directory.path()) == names);
    };
    const std::string own = "time,crystal,energy\n";
    refused("csv", "a.csv", "", "", "empty");
    refused("csv", "a.csv", "t,c\n1,2\n", "", "--columns says");
    refused("csv", "a.csv", own + "1,2\n", "", "line 2: 2 columns; expected 3");
    refused("csv", "a.csv", own + "-1,2,3\n", "", "time '-1'");
    refused("csv", "a.csv", own + "18446744073709551616,2,3\n", "", "expected a whole number");
    refused("csv", "a.csv", own + "1,2880,3\n", "", "crystal 2880: expected a number below 2880");
    refused("csv", "a.csv", own + "1,2,nan\n", "", "finite");
    refused("csv", "a.csv", own + std::string(70'000, '1'), "", "expected lines of text");
    refused("csv", "a.csv", "t,c\n1,2\n", "--columns time=t:parsec,crystal=c", "expected ticks, ps, ns", 64);
    refused("csv", "a.csv", "t,c\n1,2\n", "--columns time=x,crystal=c", "expected one of t, c", 64);
    refused("csv", "a.csv", "t,c\n1,2\n", "--columns time=t,time=t", "twice", 64);
    refused("csv", "a.csv", "t,c\n1,2\n", "--columns time=t,crystal=c,dt=t", "fields of singles", 64);
    refused("csv", "a.csv", "t,c\n1,2\n", "--columns time=t", "expected crystal=COLUMN", 64);
    refused("csv", "a.csv", "t,a,b,d\n1,2,3,-5\n", "--columns time=t,crystal_a=a,crystal_b=b,dt=d",
            "expected a photon at");
    refused("csv", "a.csv", "t,a,b,d\n1,2,3,5000000000\n", "--columns time=t,crystal_a=a,crystal_b=b,dt=d",
            "2^32 ticks");
    refused("csv", "a.csv", "t,c\n-1,2\n", "--columns time=t:s,crystal=c", "expected a number of s");

    refused("hdf5", "a.h5", "no HDF5", "", "expected an HDF5 file");
    refused("hdf5", "a.h5", "\x89HDF\r\n\x1a\n and no more", "", "HDF5");

    Packed safir;
    std::array<char, 32> signature{"SAFIR CListModeData"};
    safir.put(signature, std::uint64_t{1} << 63U, std::uint64_t{0});
    refused("safir", "a.safir", safir.bytes().substr(0, 20), "", "begins with");
    refused("safir", "a.safir", safir.bytes().substr(0, 45), "", "truncated");
    refused("safir", "a.safir", safir.bytes() + std::string(6, '\xFF') + std::string(2, '\0'), "",
            "ring 255");
    refused("safir", "a.safir", safir.bytes(), "--crystals" + quoted(directory / "map.txt"),
            "is in no crystal");
    write_file(directory / "map.txt", "0\t0\t0\t0.0\n");
    refused("safir", "a.safir", safir.bytes(), "--crystals" + quoted(directory / "map.txt"), "expected ring");
}

TEST_CASE("import: bad headers and data of castor and petsys are refused", "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto scanner = scanner_file(directory);
    const auto channels = channel_table(directory);
    Packed event;
    event.put(std::uint32_t{5}, std::uint32_t{1}, std::uint32_t{2});
    const std::string header =
        "Data filename: a.cdf\nNumber of events: 1\nData mode: list-mode\nData type: PET\nStart time (s): 0\n"
        "Duration (s): 1\nScanner name: x\n";
    const auto castor = [&](const std::string& text, const std::string& data, const std::string& expected,
                            int status = 1) {
        write_file(directory / "a.cdh", text);
        write_file(directory / "a.cdf", data);
        const Outcome outcome = imported("castor", directory / "a.cdh", scanner, directory / "out.plm");
        CAPTURE(text, outcome.out);
        CHECK(outcome.status == status);
        CHECK_THAT(outcome.out, contains(expected));
        CHECK(std::filesystem::exists(directory / "out.plm") == (status == 0));
    };
    const auto with = [&](std::string from, const std::string& to) {
        std::string text = header;
        return text.replace(text.find(from), from.size(), to);
    };
    castor(header, event.bytes().substr(0, 11), "expected 1 events of 12 bytes");
    castor(header + "TOF information flag: 1\n", event.bytes(), "events of 16 bytes");
    castor(header + "POI information flag: 1\n", event.bytes(), "is not known");
    castor(header + "Maximum number of lines per event: 2\n", event.bytes(), "expected 1");
    castor(with("list-mode", "histogram"), event.bytes(), "expected list-mode");
    castor(with("Duration (s): 1", "Duration (s): -1"), event.bytes(), "seconds");
    castor(with("Duration (s): 1", "Duration (s): 0.005"), event.bytes(), "a time of 5 ms");
    castor(with("Number of events: 1\n", ""), event.bytes(), "no key 'number of events'");
    castor(with("a.cdf", "none.cdf"), event.bytes(), "none.cdf", 74);
    event.put(std::uint32_t{5}, std::uint32_t{1}, std::uint32_t{2880});
    castor(with("events: 1", "events: 2"), event.bytes(), "crystal 2880");

    const auto petsys = [&](const std::string& name, const std::string& data, const std::string& options,
                            const std::string& expected, int status = 1) {
        write_file(directory / name, data);
        const Outcome outcome = imported("petsys", directory / name, scanner, directory / "out.plm",
                                         options + " --crystals" + quoted(channels));
        CAPTURE(name, options, outcome.out);
        CHECK(outcome.status == status);
        CHECK_THAT(outcome.out, contains(expected));
    };
    const auto hit = [](std::int64_t ps, float energy, std::int32_t channel) {
        return Packed().put(ps, energy, channel).bytes();
    };
    const std::string singles = "--kev-per-unit 1 --records singles";
    petsys("a.ldat", hit(1, 1, 1000), "--records singles", "--kev-per-unit", 64);
    petsys("a.ldat", hit(1, 1, 1000), "--kev-per-unit 1", "--records", 64);
    petsys("a.ldat", hit(1, 1, 1000), "--kev-per-unit 1 --records hits", "expected singles", 64);
    petsys("a.ldat", hit(1, 1, 1000).substr(1), singles, "multiple of 16");
    petsys("a.ldat", hit(-1, 1, 1000), singles, "a time of -1 ps");
    petsys("a.ldat", hit(1, std::numeric_limits<float>::quiet_NaN(), 1000), singles, "an energy");
    petsys("a.ldat", hit(1, 1, 1001), singles, "no record is left");
    petsys("a.ldat", hit(1, 1, 1001), singles, "channel 1001; expected a number of");
    petsys("a.ldat", hit(1, -1, 1000), singles, "energies are below 0");
    petsys("a.ldat", "\x02\x02" + hit(1, 1, 1000), "--kev-per-unit 1 --records groups", "hit 2 of 2");
    petsys("a.ldat", "\x02" + hit(1, 1, 1000), "--kev-per-unit 1 --records groups-compact", "truncated");
    petsys("a.dat", "1\t2\t3\t4\n", "--kev-per-unit 1", "4 columns");
    petsys("a.dat", "1\t1\t1000\n1\t1\n", "--kev-per-unit 1", "line 2: 2 columns; expected 3");
    petsys("a.dat", "2\n1\t1\t1000\n", "--kev-per-unit 1", "truncated");
    write_file(channels, "crystal,number_in_file\n0,7\n1,7\n");
    petsys("a.ldat", hit(1, 1, 7), singles, "number 7 twice");
}

// The file of seconds: what was appended is read back, whatever happens to the file.
#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "daemon/seconds/file.hpp"
#include "daemon/seconds/reader.hpp"
#include "daemon/seconds/sums_reader.hpp"
#include "tests/daemon/seconds/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/faulty_disk.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq;
using namespace petacq::test;
using config::Compression;

namespace {

bool same(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b));
}

/// Checks every field against the second it came from.
void check_second(const daemon::SecondsReader& reader, const daemon::Second& s) {
    std::size_t checked = 0;
    const auto expect = [&](const char* name, std::size_t count,
                            const std::function<double(std::size_t)>& f) {
        INFO(name);
        const daemon::SecondField* const field = reader.find(name);
        REQUIRE(field != nullptr);
        const daemon::FieldValues values = reader.values(*field);
        REQUIRE(values.size() == count);
        for (std::size_t i = 0; i < count; ++i)
            CHECK(same(values.number(i), f(i)));
        ++checked;
    };
    const auto number = [&](const char* name, double value) {
        expect(name, 1, [&](std::size_t) { return value; });
    };
    const auto all = [&](const char* name, const auto& numbers) {
        expect(name, numbers.size(), [&](std::size_t i) { return static_cast<double>(numbers[i]); });
    };
    number("start", static_cast<double>(s.range.start));
    number("length", static_cast<double>(s.range.ticks()));
#define PETACQ_CHECK(section, name, ...) number(#name, static_cast<double>(s.sums.counts.name));
    PETACQ_SINGLE_COUNTERS(PETACQ_CHECK)
#undef PETACQ_CHECK
    number("late", static_cast<double>(s.late));
    number("lost", s.lost);
    number("load", s.load);
    number("pile_up", s.pile_up);
    number("delayeds_weight", s.delayeds_weight);
    number("randoms", s.randoms.total);
    all("module_pairs", s.sums.module_pairs);
    all("refused_pairs", s.sums.refused_pairs);
    all("energies", s.sums.energies);
    all("crystal_unpaired", s.sums.unpaired);
    all("crystal_grouped", s.sums.grouped);
    all("crystal_prompts", s.sums.prompts);
    all("crystal_delayeds", s.sums.delayeds);
    all("module_live", s.live);
    all("module_dead_time", s.dead_time);
    all("module_temperature", s.temperature_C);
    const auto ends = [&](const char* name, auto get) {
        expect(name, s.sums.modules.size(),
               [&](std::size_t i) { return static_cast<double>(get(s.sums.modules[i])); });
    };
    ends("module_dt", [](const gpu::PromptEnds& m) { return static_cast<std::int64_t>(m.dt); });
    ends("module_abs_dt", [](const gpu::PromptEnds& m) { return m.abs_dt; });
    ends("module_dt_squared", [](const gpu::PromptEnds& m) { return m.dt_squared; });
    ends("module_peak", [](const gpu::PromptEnds& m) { return m.peak; });
    ends("module_peak_energy", [](const gpu::PromptEnds& m) { return m.peak_energy; });
    // Crystal c of the one ring of six columns lies in module c % 6 / 2.
    const auto sum = [&](const auto& crystals, std::size_t module) {
        double total = 0;
        for (std::size_t c = 0; c < crystals.size(); ++c)
            total += c % 6 / 2 == module ? crystals[c] : 0;
        return total;
    };
    expect("module_prompts", 3, [&](std::size_t m) { return sum(s.sums.prompts, m); });
    expect("module_singles", 3,
           [&](std::size_t m) { return sum(s.sums.unpaired, m) + sum(s.sums.grouped, m); });
    CHECK(checked == reader.fields().size());
}

/// The number of whole seconds in the file, each of which must be right.
std::uint64_t seconds_in(const std::filesystem::path& path) {
    daemon::SecondsReader reader(path);
    std::uint64_t count = 0;
    for (; reader.next(); ++count)
        REQUIRE(reader.start() == 5000 + 1000 * count);
    return count;
}

}  // namespace

TEST_CASE("seconds are read back field by field", "[seconds]") {
    const TemporaryDirectory directory;
    const auto compression = GENERATE(Compression::none, Compression::zstd);
    const daemon::SecondsCounts counts = write_seconds(directory / "seconds.plm", 20, compression);
    CHECK(counts.appended == 20);
    CHECK(counts.written == 20);
    CHECK(counts.bytes == std::filesystem::file_size(directory / "seconds.plm"));
    CHECK_FALSE(counts.waiting);
    daemon::SecondsReader reader(directory / "seconds.plm");
    CHECK(reader.reader().description().at("run_id") == "test-run");
    CHECK(reader.reader().header().record_bytes % 64 == 0);
    for (std::uint64_t i = 0; i < 20; ++i) {
        REQUIRE(reader.next());
        CHECK(reader.start() == 5000 + 1000 * i);
        CHECK(reader.length() == 1000);
        check_second(reader, second_number(i));
        CHECK(reader.reader().block().first_time == reader.start());
    }
    CHECK_FALSE(reader.next());
    CHECK(reader.reader().condition().state == daemon::FileState::complete);
}

TEST_CASE("the sums of a second are read back, also of a file without the latest fields", "[seconds]") {
    const TemporaryDirectory directory;
    const auto path = directory / "seconds.plm";
    write_seconds(path, 2);
    gpu::IntervalSums expected = second_number(0).sums;
    {
        daemon::SecondsReader reader(path);
        daemon::SumsReader sums(reader, small_scanner());
        REQUIRE(reader.next());
        CHECK(sums.read() == expected);
    }
    // Version 1.0 wrote files without these fields.
    std::string bytes = read_file(path);
    for (const std::string name : {"\"refused_pairs\"", "\"energies\""}) {
        std::size_t at = bytes.find("\"name\":" + name);
        REQUIRE(at != std::string::npos);
        bytes[at + std::string("\"name\":\"").size()] = '_';
    }
    daemon::FileHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    const auto crc_of = [&](std::size_t from, std::size_t to) {
        return daemon::crc32c(std::as_bytes(std::span(bytes).subspan(from, to - from)));
    };
    header.description_crc = crc_of(sizeof header, header.header_bytes);
    std::memcpy(bytes.data(), &header, sizeof header);
    header.header_crc = crc_of(0, offsetof(daemon::FileHeader, header_crc));
    std::memcpy(bytes.data(), &header, sizeof header);
    write_file(path, bytes);
    std::fill(expected.refused_pairs.begin(), expected.refused_pairs.end(), 0U);
    std::fill(expected.energies.begin(), expected.energies.end(), 0U);
    daemon::SecondsReader reader(path);
    daemon::SumsReader sums(reader, small_scanner());
    REQUIRE(reader.next());
    CHECK(sums.read() == expected);
}

TEST_CASE("a file of seconds that is cut at any byte loses the last second only", "[seconds]") {
    const TemporaryDirectory directory;
    const auto whole = directory / "seconds.plm";
    write_seconds(whole, 3);
    const std::uint64_t header = daemon::SecondsReader(whole).reader().header().header_bytes;
    const std::uint64_t block =
        sizeof(daemon::BlockHeader) + daemon::SecondsReader(whole).reader().header().record_bytes;
    const std::string bytes = read_file(whole);
    const auto cut = directory / "cut.plm";
    for (std::uint64_t length = header; length < bytes.size(); ++length) {
        write_file(cut, bytes.substr(0, length));
        if (seconds_in(cut) != std::min<std::uint64_t>((length - header) / block, 3))
            FAIL("cut at " << length);
    }
    for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{39}, header - 1}) {
        write_file(cut, bytes.substr(0, length));
        CHECK_THROWS_AS(daemon::SecondsReader(cut), daemon::NotListMode);
    }
}

TEST_CASE("a full disk ends the file of seconds at its last whole second", "[seconds]") {
    const TemporaryDirectory directory;
    FaultyDisk disk;
    daemon::SecondsFile file(directory / "seconds.plm", small_scanner(), nlohmann::json::object(),
                             Compression::none, std::chrono::milliseconds(0));
    const std::uint64_t header = file.counts().bytes;
    const daemon::SecondRecord record(small_scanner());
    disk.take(2 * (sizeof(daemon::BlockHeader) + record.bytes()) + 100);
    for (std::uint64_t i = 0; i < 50; ++i)
        file.append(second_number(i));
    const daemon::SecondsCounts counts = file.finish();
    CHECK(counts.appended == 50);
    CHECK(counts.written == 2);
    CHECK(counts.write_failed == 48);
    CHECK(file.failure().find("seconds.plm") != std::string::npos);
    CHECK(file.part().records == 2);
    CHECK(file.part().first_time == 5000);
    CHECK(file.part().last_time == 6000);
    CHECK(counts.bytes == header + 2 * (sizeof(daemon::BlockHeader) + record.bytes()));
    CHECK(seconds_in(directory / "seconds.plm") == 2);
    CHECK_THROWS_AS(file.append(second_number(51)), std::logic_error);
}

TEST_CASE("a file of seconds without seconds is complete", "[seconds]") {
    const TemporaryDirectory directory;
    write_seconds(directory / "seconds.plm", 0);
    CHECK(seconds_in(directory / "seconds.plm") == 0);
    CHECK_THROWS(write_seconds(directory / "seconds.plm", 1));  // it exists
}

TEST_CASE("the description of a second must fit its record", "[seconds]") {
    const daemon::SecondRecord record(small_scanner());
    nlohmann::json fields = record.description();
    CHECK(daemon::fields_of(fields, record.bytes()).size() == record.fields().size());
    SECTION("a type of a later version is left out") {
        fields[5]["type"] = "<f16";
        CHECK(daemon::fields_of(fields, record.bytes()).size() == record.fields().size() - 1);
    }
    SECTION("bad ones are refused") {
        const auto refuse = [&] {
            CHECK_THROWS_AS(daemon::fields_of(fields, record.bytes()), std::invalid_argument);
        };
        SECTION("offset") {
            fields[7]["offset"] = record.bytes() - 4;
        }
        SECTION("large offset") {
            fields[7]["offset"] = UINT64_MAX;
        }
        SECTION("large shape") {
            fields[7]["shape"] = {UINT64_MAX / 8};
        }
        SECTION("no numbers, at the end") {
            fields[7]["shape"] = {0};
            fields[7]["offset"] = record.bytes();
        }
        SECTION("two dimensions") {
            fields[7]["shape"] = {2, 2};
        }
        SECTION("no name") {
            fields[7].erase("name");
        }
        SECTION("no array") {
            fields = 3;
        }
        SECTION("no start") {
            fields[0]["name"] = "begin";
        }
        SECTION("length elsewhere") {
            fields[1]["offset"] = 16;
        }
        refuse();
    }
}

TEST_CASE("seconds that are discarded leave nothing behind", "[seconds]") {
    const TemporaryDirectory directory;
    const auto path = directory / "seconds.plm";
    const auto compression = GENERATE(Compression::none, Compression::zstd);
    {
        daemon::SecondsFile file(path, small_scanner(), nlohmann::json::object(), compression,
                                 std::chrono::seconds(1));
        const bool written = GENERATE(true, false);
        for (std::uint64_t i = 10; i < 15; ++i)
            file.append(second_number(i));
        while (written && file.counts().written < 5) {
        }
        file.start_again();
        for (std::uint64_t i = 0; i < 3; ++i)
            file.append(second_number(i));
        const daemon::SecondsCounts counts = file.finish();
        CHECK(counts.appended == 3);
        CHECK(counts.written == 3);
        CHECK(file.failure().empty());
        CHECK(file.part().records == 3);
        CHECK(file.part().first_time == 5000);
        CHECK(file.part().bytes == std::filesystem::file_size(path));
    }
    CHECK(seconds_in(path) == 3);
    daemon::SecondsReader reader(path);
    while (reader.next()) {
    }
    CHECK(reader.reader().condition().state == daemon::FileState::complete);
    CHECK(reader.reader().condition().damage.empty());
}

TEST_CASE("seconds of more than 256 modules have pairs of sectors") {
    const TemporaryDirectory dir;
    config::Geometry g = small_scanner();
    g.channels = g.bdm_count = 300;
    daemon::Second s = daemon::Second::none(g);
    s.range = {0, 1000};
    REQUIRE(s.sums.module_pairs.size() == std::size_t{150} * 150);
    std::iota(s.sums.module_pairs.begin(), s.sums.module_pairs.end(), 1U);
    std::iota(s.sums.refused_pairs.begin(), s.sums.refused_pairs.end(), 7U);
    s.sums.modules[299].peak = 5;
    daemon::SecondsFile file(dir / "seconds.plm", g, nlohmann::json::object(), Compression::none,
                             std::chrono::seconds(1));
    file.append(s);
    file.finish();
    daemon::SecondsReader reader(dir / "seconds.plm");
    CHECK(reader.find("module_pairs")->shape == daemon::FieldShape::by_sector_pair);
    CHECK(reader.find("module_pairs")->help.find("sector a") != std::string::npos);
    REQUIRE(reader.next());
    daemon::SumsReader sums(reader, g);
    CHECK((sums.read() == s.sums));
}

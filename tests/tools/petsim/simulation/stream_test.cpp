// Datagrams: reproducible, in order, whole.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/petsim/common.hpp"

using namespace petacq;

namespace {

sim::Options eventful() {
    auto o = test::point_options(5, 0.03);
    o.physics.intrinsic_hz = 20;
    o.physics.dark_hz = 1000;
    o.physics.dead_time_ticks = 5000;
    o.faults.loss = 0.02;
    o.faults.duplicate = 0.02;
    o.faults.reorder = 0.05;
    o.faults.corrupt.fill(0.01);
    o.wire.payload = 496;
    return o;
}

bool same_truth(const sim::TruthRecord& a, const sim::TruthRecord& b) {
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): as in the file
    return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

TEST_CASE("the same seed gives the same datagrams and truth on any number of threads", "[petsim][stream]") {
    auto options = eventful();
    const auto one = test::record(options);
    REQUIRE(one.datagrams.size() > 500);
    options.threads = GENERATE(2U, 5U);
    const auto several = test::record(options);
    CHECK(one.datagrams == several.datagrams);
    CHECK(std::equal(one.truth.begin(), one.truth.end(), several.truth.begin(), several.truth.end(),
                     same_truth));
    CHECK(sim::to_json(one.statistics, true) == sim::to_json(several.statistics, true));
    options.seed += 1;
    CHECK(test::record(options).datagrams != one.datagrams);
}

TEST_CASE("each source is in its own time order and counts its datagrams", "[petsim][stream]") {
    auto options = test::point_options();
    options.physics.dark_hz = 1000;
    options.wire.payload = GENERATE(32U, 1472U, 8972U, 65507U);
    options.wire.sources = GENERATE(0U, 1U, 5U);
    const auto calibration = test::small_calibration(GENERATE(40, 200'000'000));  // far beyond a chunk
    const auto run = test::record(test::small_scanner(), calibration, options);
    std::map<std::uint16_t, std::uint64_t> time;
    std::map<std::uint16_t, std::uint64_t> sequence;
    std::set<std::uint16_t> ended;
    const std::uint32_t sources = options.wire.sources > 0 ? options.wire.sources : 24;
    std::uint64_t due = 0;
    for (const auto& d : run.datagrams) {
        net::DatagramHeader header;
        REQUIRE(d.bytes.size() <= options.wire.payload);
        REQUIRE(net::parse_datagram(net::Framing::sequenced, net::FrameVersion::one, d.bytes.data(),
                                    d.bytes.size(), header) == net::Malformed::none);
        REQUIRE(header.source == d.source);
        REQUIRE(header.sequence == d.sequence);
        REQUIRE(d.sequence == sequence[d.source]++);
        REQUIRE(d.due_ticks >= due);
        due = d.due_ticks;
        REQUIRE(ended.count(d.source) == 0);
        if ((header.flags & net::flag_end_of_stream) != 0) ended.insert(d.source);
        for (std::size_t i = 0; i < d.frames(); ++i) {
            const auto frame = d.frame(i);
            REQUIRE(frame.time >= time[d.source]);
            time[d.source] = frame.time;
            REQUIRE(d.source == frame.bdm * sources / 24);
        }
    }
    CHECK(ended.size() == sources);
}

TEST_CASE("frames of version 2 say the same as those of version 1", "[petsim][stream]") {
    auto options = test::point_options();
    options.physics.dark_hz = 1000;
    options.tags.dead_time = sim::RegularTags{3, 0.005};
    auto scanner = test::small_scanner();
    const auto one = test::record(scanner, test::small_calibration(), options);
    scanner.frame_version = net::FrameVersion::two;
    const auto two = test::record(scanner, test::small_calibration(), options);
    REQUIRE(two.datagrams.size() == one.datagrams.size());
    REQUIRE(two.truth.size() == one.truth.size());
    CHECK(std::memcmp(two.truth.data(), one.truth.data(), one.truth.size() * sizeof(sim::TruthRecord)) == 0);
    std::size_t tags = 0;
    for (std::size_t i = 0; i < one.datagrams.size(); ++i) {
        const auto& a = one.datagrams[i];
        const auto& b = two.datagrams[i];
        net::DatagramHeader header;
        REQUIRE(net::parse_datagram(net::Framing::sequenced, net::FrameVersion::two, b.bytes.data(),
                                    b.bytes.size(), header) == net::Malformed::none);
        REQUIRE(header.sequence == a.sequence);
        REQUIRE(a.frames() == b.frames());
        for (std::size_t k = 0; k < a.frames(); ++k) {
            const net::Frame x = a.frame(k);
            const net::Frame y = b.frame(k, net::FrameVersion::two);
            REQUIRE(x.time == y.time);
            REQUIRE(x.head_marker == y.head_marker);
            if (x.head_marker == net::default_tag_marker) {
                ++tags;
                continue;
            }
            REQUIRE(x.bdm == y.bdm);
            REQUIRE(x.du == y.du);
            REQUIRE((x.x == y.x && x.y == y.y));
            REQUIRE(x.energy == y.energy);
            REQUIRE((x.temperature_16ths & ~15) == y.temperature_16ths);
        }
    }
    CHECK(tags > 0);
}

TEST_CASE("sources and modules are those of the scanner description", "[petsim][stream]") {
    auto options = test::point_options();
    auto scanner = test::small_scanner();
    const auto carried = [&](const std::map<std::uint16_t, std::set<unsigned>>& expected) {
        std::map<std::uint16_t, std::set<unsigned>> modules;
        for (const auto& d : test::record(scanner, test::small_calibration(), options).datagrams) {
            net::DatagramHeader header;
            REQUIRE(net::parse_datagram(net::Framing::sequenced, net::FrameVersion::one, d.bytes.data(),
                                        d.bytes.size(), header) == net::Malformed::none);
            for (std::size_t i = 0; i < d.frames(); ++i)
                modules[header.source].insert(d.frame(i).bdm);
        }
        CHECK(modules == expected);
    };
    std::vector<std::uint32_t> odd;
    std::vector<std::uint32_t> even;
    for (std::uint32_t bdm = 0; bdm < 24; ++bdm)
        (bdm % 2 == 1 ? odd : even).push_back(bdm);
    scanner.sources = {{700, "", 0, odd}, {9, "", 0, even}};
    carried({{700, {odd.begin(), odd.end()}}, {9, {even.begin(), even.end()}}});
    CHECK(sim::wire_sources(options, scanner).size() == 2);
    options.wire.sources = 24;
    CHECK(sim::wire_sources(options, scanner)[23].id == 23);
    options.wire.framing = net::Framing::bare;
    CHECK_FALSE(sim::wire_sources(options, scanner)[23].id);
    options.wire.sources = 0;
    CHECK_THROWS_AS(sim::check(options, scanner), std::invalid_argument);
}

TEST_CASE("a partly filled datagram leaves in time, quiet sources send heartbeats", "[petsim][stream]") {
    auto options = test::point_options(0.05, 1.0);
    options.wire.flush_us = 500;
    options.wire.heartbeat_ms = 10;
    options.wire.skew_us = 0;
    options.faults.silences = {{3, 0.2, 0.7}};
    const auto scanner = test::small_scanner();
    const auto run = test::record(scanner, test::small_calibration(0), options);
    const std::uint64_t flush = config::ticks_of(500e-6, scanner);
    const std::uint64_t heartbeat = config::ticks_of(10e-3, scanner);
    std::map<std::uint16_t, std::uint64_t> last;
    std::uint64_t longest_silence = 0;
    std::uint64_t heartbeats = 0;
    for (const auto& d : run.datagrams) {
        const std::uint64_t gap = d.due_ticks - last[d.source];
        if (d.source == 3) {
            longest_silence = std::max(longest_silence, gap);
        } else {
            REQUIRE(gap <= heartbeat + flush + 1);
        }
        last[d.source] = d.due_ticks;
        if (d.frames() == 0) ++heartbeats;
        if (d.frames() > 0) REQUIRE(d.frame(d.frames() - 1).time - d.frame(0).time <= flush);
    }
    CHECK(run.statistics.total().heartbeats + 24 == heartbeats);  // and an end of stream each
    CHECK(run.statistics.total().silenced == run.statistics.sources[3].silenced);
    CHECK(run.statistics.sources[3].silenced > 0);
    CHECK(longest_silence > config::ticks_of(0.49, scanner));
    CHECK(run.statistics.total().expected.lost == 0);
}

TEST_CASE("bare framing is frames only", "[petsim][stream]") {
    auto options = test::point_options();
    options.wire.framing = net::Framing::bare;
    options.wire.payload = 1472;
    const auto run = test::record(options);
    std::size_t frames = 0;
    for (const auto& d : run.datagrams) {
        REQUIRE(!d.bytes.empty());
        REQUIRE(d.bytes.size() % 16 == 0);
        frames += d.bytes.size() / 16;
    }
    CHECK(frames == run.truth.size());
    CHECK(run.statistics.total().heartbeats == 0);
}

TEST_CASE("the start time and stopping early", "[petsim][stream]") {
    auto options = test::point_options(5, 10.0);
    options.start_s = 3600;
    const auto scanner = test::small_scanner();
    sim::Simulation simulation(scanner, test::small_calibration(), options);
    std::size_t ends = 0;
    std::uint64_t first = 0;
    simulation.run([&](const sim::Datagram& d) {
        if (d.bytes.size() > net::header_bytes && first == 0) first = net::frame_time(d.bytes.data() + 16);
        if (d.bytes.size() == net::header_bytes && (static_cast<unsigned>(d.bytes[5]) & 1U) != 0) ++ends;
        simulation.stop();
    });
    CHECK(ends == 24);
    CHECK(first >= config::ticks_of(3600, scanner));
    CHECK(first < config::ticks_of(3600.1, scanner));
    CHECK(simulation.statistics().seconds < 1);
}

TEST_CASE("invalid options are refused by name", "[petsim][options]") {
    const auto scanner = test::small_scanner();
    const auto calibration = test::small_calibration();
    const auto refused = [&](auto change, const std::string& word) {
        auto options = test::point_options();
        change(options);
        try {
            sim::Simulation simulation(scanner, calibration, options);
        } catch (const std::invalid_argument& e) {
            return std::string(e.what()).find(word) != std::string::npos;
        }
        return false;
    };
    CHECK(refused([](auto& o) { o.faults.loss = 1.5; }, "--loss"));
    CHECK(refused([](auto& o) { o.wire.payload = 31; }, "--payload"));
    CHECK(refused([](auto& o) { o.wire.payload = 65508; }, "--payload"));
    CHECK(refused([](auto& o) { o.wire.sources = 25; }, "--sources"));
    CHECK(refused([](auto& o) { o.activity[0].at = {32, 0, 0}; }, "ring radius"));
    CHECK(refused([](auto& o) { o.activity[0].activity_mbq = -1; }, "activity"));
    CHECK(refused([](auto& o) { o.physics.efficiency = 1.1; }, "--efficiency"));
    CHECK(refused([](auto& o) { o.faults.resets = {{24, 1}}; }, "--reset"));
    CHECK(refused([](auto& o) { o.faults.silences = {{1, 2, 1}}; }, "--silent"));
    CHECK(refused([](auto& o) { o.duration_s = std::nan(""); }, "--duration-s"));
    CHECK(refused(
        [](auto& o) {
            o.duration_s = 1e9;
            o.start_s = 1e9;
        },
        "2^62"));
    CHECK(refused(
        [](auto& o) {
            o.wire.framing = net::Framing::bare;
            o.faults.corrupt[static_cast<std::size_t>(sim::Field::magic)] = 0.1;
        },
        "--corrupt"));
}

TEST_CASE("a truth file reads back as written", "[petsim][truth]") {
    const test::TemporaryDirectory directory;
    const std::filesystem::path path = directory / "truth";
    std::vector<sim::TruthRecord> records(300'000);
    for (std::size_t i = 0; i < records.size(); ++i) {
        records[i].annihilation = i;
        records[i].time = i * i;
        records[i].flags = static_cast<std::uint16_t>(i);
    }
    {
        sim::TruthWriter writer(path, {{"a", 1}});
        for (std::size_t i = 0; i < records.size(); i += 1000)
            writer.add(std::span(records).subspan(i, 1000));
        writer.close();
    }
    nlohmann::json description;
    const auto found = sim::read_truth(path, &description);
    CHECK(description == nlohmann::json{{"a", 1}});
    CHECK(std::equal(records.begin(), records.end(), found.begin(), found.end(), same_truth));
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 7);
    CHECK_THROWS_AS(sim::read_truth(path), std::runtime_error);
    std::filesystem::resize_file(path, 5);
    CHECK_THROWS_AS(sim::read_truth(path), std::runtime_error);
    std::filesystem::remove(path);
    CHECK_THROWS_AS(sim::read_truth(path), std::runtime_error);
    CHECK_THROWS_AS(sim::TruthWriter(path / "x", {}), std::system_error);
}

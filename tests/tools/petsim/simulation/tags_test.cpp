// What moves, and the tags that tell of it.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "gpu/base/records.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/point_estimate.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petsim/simulation/base/movement.hpp"

using namespace petacq;

namespace {

constexpr double tick_ps = 15.625;
constexpr double ticks_per_s = 1e12 / tick_ps;

sim::Options breathing() {
    auto o = test::point_options(5, 0.1);
    o.cycle = {0.02, 0};
    o.activity[0].motion = {2, 8, sim::MotionShape::sine};
    return o;
}

struct SentTag {
    std::uint16_t source;
    net::TagFrame tag;
};

/// The tags of whole datagrams, each once, and the number of hits in the same datagrams.
std::vector<SentTag> tags_of(const std::vector<test::Sent>& datagrams, std::uint64_t* hits = nullptr) {
    std::vector<SentTag> out;
    std::map<std::uint16_t, std::uint64_t> last;
    bool in_order = true;
    for (const auto& d : datagrams) {
        for (std::size_t i = 0; i < d.frames(); ++i) {
            const auto tag = net::decode_tag(d.bytes.data() + net::header_bytes + i * net::frame_bytes,
                                             net::FrameVersion::one);
            in_order = in_order && tag.time >= last[d.source];  // of hits and tags alike
            last[d.source] = tag.time;
            if (tag.tag_marker == net::default_tag_marker) {
                out.push_back({d.source, tag});
            } else if (hits != nullptr) {
                ++*hits;
            }
        }
    }
    CHECK(in_order);
    return out;
}

std::vector<net::TagFrame> of_channel(const std::vector<SentTag>& tags, std::uint8_t channel) {
    std::vector<net::TagFrame> out;
    for (const auto& t : tags) {
        if (t.tag.channel == channel) out.push_back(t.tag);
    }
    return out;
}

}  // namespace

TEST_CASE("tags say what moves, in the time order of their source", "[petsim][tags]") {
    auto options = breathing();
    options.bed = {-1.5, 0.03};
    options.tags.source = 3;
    options.tags.trigger = 1;
    options.tags.gates = {{2, 0, 0.5}, {4, 0.25, 1}};
    options.tags.position = 5;
    options.tags.clock = sim::RegularTags{6, 0.01};
    options.wire.payload = GENERATE(32U, 1472U);  // one frame in a datagram, or many
    const auto run = test::record(options);
    std::uint64_t hits = 0;
    const auto tags = tags_of(run.datagrams, &hits);
    for (const auto& t : tags) {
        CHECK(t.source == 3);
        CHECK(t.tag.tail_marker == net::default_tail_marker);
    }
    const auto triggers = of_channel(tags, 1);
    REQUIRE(triggers.size() == 5);
    const std::uint64_t begin = triggers.front().time;
    const auto seconds = [&](std::uint64_t time) { return static_cast<double>(time - begin) / ticks_per_s; };
    const auto check_tag = [&](const net::TagFrame& tag, gpu::TagKind kind, double at_s, std::int64_t value) {
        CHECK(tag.kind == static_cast<std::uint8_t>(kind));
        CHECK(std::abs(seconds(tag.time) - at_s) < 1e-10);
        CHECK(static_cast<std::int32_t>(tag.value) == value);
    };
    for (std::size_t i = 0; i < 5; ++i)
        check_tag(triggers[i], gpu::TagKind::trigger, 0.02 * static_cast<double>(i), static_cast<int>(i) + 1);
    const auto first_gate = of_channel(tags, 2);
    REQUIRE(first_gate.size() == 10);
    for (std::size_t i = 0; i < 10; ++i)
        check_tag(first_gate[i], gpu::TagKind::gate, 0.01 * static_cast<double>(i), i % 2 == 0 ? 1 : 0);
    const auto second_gate = of_channel(tags, 4);
    REQUIRE(second_gate.size() == 9);  // the last one is still open
    check_tag(second_gate[0], gpu::TagKind::gate, 0.005, 1);
    check_tag(second_gate[1], gpu::TagKind::gate, 0.02, 0);
    const auto bed = of_channel(tags, 5);
    REQUIRE(bed.size() == 4);
    for (std::size_t i = 0; i < 4; ++i)
        check_tag(bed[i], gpu::TagKind::position, 0.03 * static_cast<double>(i), -1500 * static_cast<int>(i));
    const auto clock = of_channel(tags, 6);
    REQUIRE(clock.size() == 10);
    check_tag(clock[7], gpu::TagKind::clock, 0.07, 70);

    // Tags are counted apart from hits.
    const auto total = run.statistics.total();
    CHECK(tags.size() == 38);
    CHECK(total.tags == tags.size());
    CHECK(total.tags_sent == tags.size());
    CHECK(total.expected.tags == tags.size());
    CHECK(total.frames == hits);
    CHECK(total.expected.frames == hits);
    CHECK(total.hits == hits);
    CHECK(sim::to_json(run.statistics, true)["total"]["tags"] == tags.size());
    CHECK(sim::to_text(run.statistics, true).find("tags               38 = 38 sent") != std::string::npos);
    // The truth has each of them.
    std::size_t found = 0;
    for (const auto& t : run.truth) {
        if ((t.flags & sim::truth_tag) == 0) continue;
        REQUIRE(t.crystal == sim::no_crystal);
        REQUIRE((t.flags & 0xF) == 0);
        found += static_cast<std::size_t>(std::count_if(tags.begin(), tags.end(), [&](const SentTag& s) {
            return s.tag.time == t.time && s.source == t.source &&
                   sim::truth_of_tag(s.tag.channel, s.tag.kind, s.tag.value) == t.annihilation;
        }));
    }
    CHECK(found == tags.size());
}

TEST_CASE("a clock tag has its time in milliseconds, to the nearest", "[petsim][tags]") {
    auto options = breathing();
    options.tags.clock = sim::RegularTags{6, 0.0007};
    const auto clock = of_channel(tags_of(test::record(options).datagrams), 6);
    REQUIRE(clock.size() > 100);
    for (std::size_t i = 0; i < clock.size(); ++i)
        CHECK(std::abs(clock[i].value - 0.7 * static_cast<double>(i)) < 0.5 + 1e-9);
}

TEST_CASE("tags share the faults of their datagrams, and a silent source sends none", "[petsim][tags]") {
    auto options = breathing();
    options.tags.trigger = 1;
    options.tags.clock = sim::RegularTags{6, 0.0002};
    options.wire.payload = 64;
    options.faults.loss = 0.1;
    options.faults.duplicate = 0.05;
    options.faults.corrupt.fill(0.02);
    options.faults.silences = {{0, 0.05, 0.07}};
    const auto run = test::record(options);
    const auto total = run.statistics.total();
    CHECK(total.tags_silenced > 90);
    CHECK(total.tags_silenced < 110);
    CHECK(total.tags + total.tags_silenced == 505);
    CHECK(total.tags == total.tags_sent + total.tags_lost);
    CHECK(total.tags_lost > 10);
    // No tag is corrupted, and no corrupted hit looks like a tag.
    std::map<std::pair<std::uint16_t, std::uint64_t>, bool> seen;
    std::uint64_t received = 0;
    for (const auto& d : run.datagrams) {
        net::DatagramHeader header;
        if (net::parse_datagram(net::Framing::sequenced, net::FrameVersion::one, d.bytes.data(),
                                d.bytes.size(), header) != net::Malformed::none) {
            continue;
        }
        if (!seen.emplace(std::pair(d.source, d.sequence), true).second) continue;
        for (std::size_t i = 0; i < d.frames(); ++i) {
            if (d.frame(i).head_marker == net::default_tag_marker) ++received;
        }
    }
    CHECK(received == total.expected.tags);
}

TEST_CASE("sources move with the cycle and with the bed", "[petsim][tags]") {
    auto options = breathing();
    options.physics.scatter = 0;
    options.physics.time_resolution_ps = 0;
    const auto motion =
        GENERATE(sim::Motion{2, 8, sim::MotionShape::sine}, sim::Motion{1, 8, sim::MotionShape::triangle},
                 sim::Motion{2, -8, sim::MotionShape::breath});
    options.cycle.spread = motion.axis == 1 ? 0 : 0.1;
    options.activity[0].motion = motion;
    const bool axial = motion.axis == 2;
    if (axial) options.bed = {-3, 0.06};
    options.tags.trigger = 1;
    const config::Scanner scanner = test::small_scanner();
    const auto run = test::record(options);
    std::vector<std::uint64_t> triggers;
    for (const auto& s : tags_of(run.datagrams))
        triggers.push_back(s.tag.time);
    REQUIRE(triggers.size() >= 4);

    // By cycle and eighth of it.
    constexpr std::size_t bins = 8;
    std::map<std::uint64_t, std::vector<sim::TruthRecord>> photons;
    for (const auto& t : run.truth) {
        if (t.annihilation != 0 && (t.flags & sim::truth_tag) == 0) photons[t.annihilation].push_back(t);
    }
    std::map<std::pair<std::size_t, std::size_t>, std::vector<gpu::Coincidence>> pairs;
    for (const auto& [id, both] : photons) {
        if (both.size() != 2) continue;
        const auto next = std::upper_bound(triggers.begin(), triggers.end(), both[0].time);
        if (next == triggers.begin() || next == triggers.end()) continue;
        gpu::Coincidence c;
        c.time = both[0].time;
        c.crystal_a = both[0].crystal;
        c.crystal_b = both[1].crystal;
        const std::uint64_t start = *(next - 1);
        pairs[{static_cast<std::size_t>(next - triggers.begin()), (c.time - start) * bins / (*next - start)}]
            .push_back(c);
    }
    REQUIRE(pairs.size() == (triggers.size() - 1) * bins);
    for (const auto& [where, list] : pairs) {
        const double phase = (static_cast<double>(where.second) + 0.5) / bins;
        const std::uint64_t start = triggers[where.first - 1];
        const std::uint64_t length = triggers[where.first] - start;
        const double seconds =
            (static_cast<double>(start - triggers[0]) + phase * static_cast<double>(length)) / ticks_per_s;
        if (axial && std::abs(seconds - 0.06) < 0.004) continue;  // the bed moves in this bin
        const double expected = sim::displacement_mm(motion, phase) + (axial && seconds > 0.06 ? -3.0 : 0.0);
        CAPTURE(where.first, where.second, list.size(), seconds);
        REQUIRE(list.size() > 100);
        CHECK(std::abs(test::point_along(scanner, list, motion.axis) - expected) < 0.8);
    }
}

TEST_CASE("dead time tags add up to the dead time of their source", "[petsim][tags]") {
    auto options = test::point_options(20, 0.02);
    options.physics.dead_time_ticks = 200'000;  // 3 us
    options.wire.sources = 4;
    options.tags.dead_time = sim::RegularTags{7, 0.001};
    const auto run = test::record(options);
    const auto tags = tags_of(run.datagrams);
    for (std::uint16_t source = 0; source < 4; ++source) {
        std::uint64_t blind = 0;
        std::uint64_t last = 0;
        std::size_t count = 0;
        for (const auto& s : tags) {
            if (s.source != source) continue;
            REQUIRE(s.tag.kind == static_cast<std::uint8_t>(gpu::TagKind::dead_time));
            blind += s.tag.value;
            last = s.tag.time;
            ++count;
        }
        CHECK(count >= 19);
        std::uint64_t expected = 0;
        for (const auto& d : run.datagrams) {
            for (std::size_t i = 0; i < d.frames(); ++i) {
                const auto frame = d.frame(i);
                if (d.source == source && frame.head_marker == net::default_head_marker && frame.time < last)
                    expected += std::min<std::uint64_t>(last - frame.time, 200'000);
            }
        }
        CHECK(blind == expected / 36);  // 6 modules of 6 units
    }
}

TEST_CASE("movement and tags that make no sense are refused", "[petsim][tags]") {
    const auto refused = [](auto change) {
        auto options = breathing();
        change(options);
        CHECK_THROWS_AS(sim::check(options, test::small_scanner()), std::invalid_argument);
    };
    CHECK_NOTHROW(sim::check(breathing(), test::small_scanner()));
    refused([](sim::Options& o) { o.cycle.period_s = 0; });
    refused([](sim::Options& o) { o.cycle.period_s = -1; });
    refused([](sim::Options& o) { o.cycle.period_s = 1e-12; });
    refused([](sim::Options& o) { o.cycle.spread = 0.5; });
    refused([](sim::Options& o) { o.activity[0].motion = {0, 32, sim::MotionShape::sine}; });
    refused([](sim::Options& o) { o.bed = {1, -1}; });
    refused([](sim::Options& o) { o.tags.trigger = 16; });
    refused([](sim::Options& o) { o.tags.source = 24; });
    refused([](sim::Options& o) { o.tags.gates = {{1, 0.5, 0.5}}; });
    refused([](sim::Options& o) { o.tags.gates = {{1, 0.5, 1.5}}; });
    refused([](sim::Options& o) { o.tags.dead_time = sim::RegularTags{1, 1}; });  // more ticks than 2^32
    refused([](sim::Options& o) { o.tags.clock = sim::RegularTags{1, 0}; });
    const auto motion = [](const char* text) {
        return sim::sources_from_json(
                   nlohmann::json::parse(
                       std::string(
                           R"({"sources": [{"type": "point", "position_mm": [0, 0, 0], "activity_MBq": 1,
                                         "motion": )") +
                       text + "}]}"))
            .sources[0]
            .motion;
    };
    CHECK(motion(R"({"axis": "x", "amplitude_mm": -3, "shape": "breath"})").amplitude_mm == -3);
    CHECK_THROWS_WITH(motion(R"({"axis": "r"})"), test::contains("/sources/0/motion/axis"));
    CHECK_THROWS_WITH(motion(R"({"speed": 1})"), test::contains("unknown key"));
}

TEST_CASE("a scanner that turns sends the counts of its encoder", "[petsim][tags][rotation]") {
    auto scanner = config::load_scanner(PETACQ_SOURCE_DIR "/config/examples/scanners/two-heads.scanner.json");
    config::CalibrationModel model;
    const auto calibration = config::make_calibration(scanner, model);
    auto options = test::point_options(0.5, 0.1);
    const double last_s = 0.1 - scanner.tick_ps * 1e-12;  // until the end of the simulation the angle is told
    const auto angles = [&] {
        std::vector<std::pair<double, std::int32_t>> out;
        const auto run = test::record(scanner, calibration, options);
        for (const auto& tag : of_channel(tags_of(run.datagrams), 1)) {
            CHECK(tag.kind == static_cast<std::uint8_t>(gpu::TagKind::position));
            out.emplace_back(static_cast<double>(tag.time) * scanner.tick_ps * 1e-12,
                             static_cast<std::int32_t>(tag.value));
        }
        REQUIRE_FALSE(out.empty());
        const double begin = out.front().first;
        for (auto& [s, count] : out)
            s -= begin;
        CHECK(out.back().first == Approx(last_s).margin(1e-12));
        for (std::size_t i = 1; i < out.size(); ++i)
            CHECK(out[i].first > out[i - 1].first);
        return out;
    };
    // It stands still.
    for (const auto& [s, count] : angles())
        CHECK(count == 0);
    // Half a turn.
    options.turning.turns_per_minute = -300;
    const auto even = angles();
    CHECK(even.size() >= 60);
    for (const auto& [s, count] : even)
        CHECK(count == Approx(-3'600'000 * 5 * s).margin(2));
    // Before and after each step.
    options.turning = {0, 15, 0.04};
    const auto steps = angles();
    REQUIRE(steps.size() == 6);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        CHECK(steps[i].second == 150'000 * static_cast<int>(i / 2));
        const std::size_t begun = (i + 1) / 2;
        const double at = std::min(0.04 * static_cast<double>(begun), 0.1);
        CHECK(steps[i].first == Approx(at).margin(1e-9));
    }

    // The last tag of the even turn is at the last tick anyway.
    options.turning = {0, 15, 0.02};
    CHECK(angles().size() == 10);

    options.tags.position = 1;
    CHECK_THROWS_WITH(sim::check(options, scanner),
                      petacq::test::contains("another channel than that of the rotation"));
    options.tags.position.reset();
    options.turning.turns_per_minute = 1;
    CHECK_THROWS_WITH(sim::check(options, scanner), petacq::test::contains("found both"));
    scanner.rotation.reset();
    CHECK_THROWS_WITH(sim::check(options, scanner), petacq::test::contains("the key rotation"));
}

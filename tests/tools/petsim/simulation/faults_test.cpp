// Faults: the statistics agree with a receiver and with the truth.
#include <array>
#include <map>
#include <set>

#include "tests/support/catch.hpp"
#include "tests/tools/petsim/common.hpp"

using namespace petacq;

namespace {

// The counts of a simple receiver that looks at every datagram once.
sim::Expected receive(const std::vector<test::Sent>& datagrams) {
    sim::Expected e;
    std::map<std::uint16_t, std::set<std::uint64_t>> seen;
    for (const auto& d : datagrams) {
        ++e.received;
        net::DatagramHeader header;
        if (net::parse_datagram(net::Framing::sequenced, net::FrameVersion::one, d.bytes.data(),
                                d.bytes.size(), header) != net::Malformed::none) {
            ++e.malformed;
            continue;
        }
        auto& numbers = seen[header.source];
        if (numbers.count(header.sequence) != 0) {
            ++e.duplicate;
            continue;
        }
        if (!numbers.empty() && header.sequence < *numbers.rbegin()) ++e.reordered;
        numbers.insert(header.sequence);
        e.frames += d.frames();
    }
    for (const auto& [source, numbers] : seen) {
        e.lost += *numbers.rbegin() - *numbers.begin() + 1 - numbers.size();
    }
    return e;
}

void check_same(const sim::Expected& found, const sim::Expected& expected) {
    CHECK(found.received == expected.received);
    CHECK(found.malformed == expected.malformed);
    CHECK(found.duplicate == expected.duplicate);
    CHECK(found.reordered == expected.reordered);
    CHECK(found.lost == expected.lost);
    CHECK(found.frames == expected.frames);
}

sim::Options busy() {
    auto o = test::point_options(5, 0.05);
    o.wire.payload = 208;
    return o;
}

}  // namespace

TEST_CASE("loss, duplicates and reordering are what a receiver counts", "[petsim][faults]") {
    auto options = busy();
    options.faults.loss = 0.03;
    options.faults.duplicate = 0.02;
    options.faults.reorder = 0.05;
    options.faults.reorder_span = 6;
    const auto run = test::record(options);
    const auto total = run.statistics.total();
    check_same(receive(run.datagrams), total.expected);
    CHECK(total.datagrams_lost > 50);
    CHECK(total.duplicated > 50);
    CHECK(total.held_back > 100);
    // Each was overtaken by at least one datagram, except those released at the end of their stream.
    CHECK(total.expected.reordered <= total.held_back);
    CHECK(total.expected.reordered + 24 >= total.held_back);
    CHECK(total.expected.lost == total.datagrams_lost);  // never the first or the last
    CHECK(total.expected.duplicate == total.duplicated);
    CHECK(total.datagrams == total.datagrams_sent + total.datagrams_lost);
    CHECK(total.frames == total.frames_sent + total.frames_lost);
    CHECK(run.datagrams.size() == total.datagrams_sent + total.duplicated);
    const double n = static_cast<double>(total.datagrams);
    CHECK(static_cast<double>(total.datagrams_lost) == Approx(0.03 * n).margin(5 * std::sqrt(0.03 * n)));
    std::uint64_t lost = 0;
    std::map<std::pair<std::uint16_t, std::uint64_t>, std::uint16_t> fate;
    for (const auto& t : run.truth) {
        lost += (t.flags & sim::truth_lost) != 0 ? 1 : 0;
        fate[{t.source, t.sequence}] = t.flags;
    }
    CHECK(lost == total.frames_lost);
    CHECK(run.truth.size() == total.frames);
    std::map<std::pair<std::uint16_t, std::uint64_t>, int> copies;
    for (const auto& d : run.datagrams)
        ++copies[{d.source, d.sequence}];
    for (const auto& [key, flags] : fate) {
        const int expected = (flags & sim::truth_lost) != 0         ? 0
                             : (flags & sim::truth_duplicated) != 0 ? 2
                                                                    : 1;
        REQUIRE(copies[key] == expected);
    }
}

TEST_CASE("corruption of each field is counted and has its effect", "[petsim][faults]") {
    const auto field = static_cast<sim::Field>(GENERATE(0, 1, 2, 3, 4, 5, 6, 7, 8));
    CAPTURE(sim::name_of(field));
    const auto scanner = test::small_scanner();
    const auto calibration = test::small_calibration();
    auto options = busy();
    options.wire.heartbeat_ms = 1;
    options.faults.corrupt[static_cast<std::size_t>(field)] = 0.1;
    options.faults.duplicate = 0.05;
    const auto run = test::record(scanner, calibration, options);
    options.faults = {};
    const auto clean = test::record(scanner, calibration, options);
    const auto total = run.statistics.total();
    const std::uint64_t corrupted = total.corrupted.at(static_cast<std::size_t>(field));
    check_same(receive(run.datagrams), total.expected);
    CHECK(corrupted > 100);

    std::map<std::pair<std::uint16_t, std::uint64_t>, const test::Sent*> whole;
    for (const auto& d : clean.datagrams)
        whole[{d.source, d.sequence}] = &d;
    std::map<std::pair<std::uint16_t, std::uint64_t>, const test::Sent*> sent;
    for (const auto& d : run.datagrams)
        sent[{d.source, d.sequence}] = &d;
    std::uint64_t changed = 0;
    for (const auto& [key, d] : sent)
        changed += d->bytes != whole.at(key)->bytes ? 1 : 0;
    CHECK(changed == corrupted);

    if (sim::breaks_datagram(field)) {
        CHECK(total.expected.lost == corrupted);
        CHECK(total.expected.malformed >= corrupted);
        return;
    }
    CHECK(total.expected.malformed == 0);
    const sim::InverseCalibration inverse(scanner, calibration);
    std::uint64_t marked = 0;
    for (const auto& t : run.truth) {
        if ((t.flags & sim::truth_corrupted) == 0) continue;
        ++marked;
        REQUIRE((t.flags & sim::truth_field_mask) >> sim::truth_field_shift == static_cast<int>(field) + 1);
        const auto frame = sent.at({t.source, t.sequence})->frame(t.index);
        const auto before = whole.at({t.source, t.sequence})->frame(t.index);
        const auto c = inverse.convert(frame, 0xA, 0x5);
        using Status = sim::Conversion::Status;
        switch (field) {
            case sim::Field::marker:
                REQUIRE(c.status == Status::bad_marker);
                break;
            case sim::Field::bdm:
            case sim::Field::du:
            case sim::Field::x:
                REQUIRE(c.status == Status::bad_address);
                break;
            case sim::Field::time:
                REQUIRE(std::abs(static_cast<double>(frame.time) - static_cast<double>(before.time)) *
                            15.625e-12 >=
                        60);
                break;
            default:
                REQUIRE(frame.energy != before.energy);
        }
        if (c.status == Status::good) {
            REQUIRE(t.crystal == c.crystal);
            REQUIRE(t.energy == c.energy);
            REQUIRE(t.time == c.time);
        } else {
            REQUIRE(t.crystal == sim::no_crystal);
        }
    }
    CHECK(marked == corrupted);
    const auto& e = total.expected;
    if (field == sim::Field::marker) CHECK(e.bad_marker == corrupted);
    if (field == sim::Field::bdm || field == sim::Field::du || field == sim::Field::x)
        CHECK(e.bad_address == corrupted);
}

TEST_CASE("a clock jump moves the times of one source, permanently or for some datagrams",
          "[petsim][faults]") {
    auto options = busy();
    const auto clean = test::record(options);
    options.faults.jumps = {{2, 0.02, 1'000'000'000'000, {}}, {5, 0.01, -777, 3}};
    const auto run = test::record(options);
    std::uint64_t permanent = 0;
    std::uint64_t passing = 0;
    REQUIRE(run.datagrams.size() == clean.datagrams.size());
    const std::uint64_t at = config::ticks_of(0.02, test::small_scanner());
    for (std::size_t i = 0; i < run.datagrams.size(); ++i) {
        const auto& d = run.datagrams[i];
        if (d.frames() == 0) continue;
        const std::uint64_t was = clean.datagrams[i].frame(0).time;
        const std::uint64_t is = d.frame(0).time;
        if (d.source == 2 && was >= at + 100'000) {
            REQUIRE(is == was + 1'000'000'000'000);
            ++permanent;
        } else if (d.source == 5 && is != was) {
            REQUIRE(is == was - 777);
            ++passing;
        } else if (d.source != 2) {
            REQUIRE(d.bytes == clean.datagrams[i].bytes);
        }
    }
    CHECK(permanent > 10);
    CHECK(passing == 3);
    CHECK(run.statistics.sources[5].clock_jumped == 3);
    for (const auto& t : run.truth) {
        REQUIRE(((t.flags & sim::truth_clock_jump) != 0 && t.source == 2) == (t.time > 900'000'000'000));
    }
}

TEST_CASE("a reset board restarts its time and sequence", "[petsim][faults]") {
    auto options = busy();
    options.faults.resets = {{4, 0.02}, {4, 0.035}};
    options.faults.reorder = 0.1;
    const auto run = test::record(options);
    int restarts = 0;
    for (const auto& d : run.datagrams) {
        if (d.source == 4 && d.sequence == 0) ++restarts;
    }
    CHECK(restarts == 3);
    CHECK(run.statistics.sources[4].resets == 2);
    CHECK(run.statistics.total().expected.lost == 0);
    std::map<std::uint16_t, std::uint64_t> latest;
    for (const auto& t : run.truth) {
        if (t.source != 4) continue;
        REQUIRE(((t.flags & sim::truth_reset) != 0) == (t.epoch > 0));
        latest[t.epoch] = std::max(latest[t.epoch], t.time);
    }
    const auto scanner = test::small_scanner();
    CHECK(latest.size() == 3);
    CHECK(latest[0] <= config::ticks_of(0.0201, scanner));
    CHECK(latest[1] <= config::ticks_of(0.0151, scanner));
    CHECK(latest[2] <= config::ticks_of(0.0151, scanner));
    CHECK(latest[2] > config::ticks_of(0.014, scanner));
}

TEST_CASE("without an end of stream, losses at the very end are not counted", "[petsim][faults]") {
    auto options = busy();
    options.wire.end_of_stream = false;
    options.faults.loss = 0.3;
    const auto run = test::record(options);
    const auto total = run.statistics.total();
    check_same(receive(run.datagrams), total.expected);
    CHECK(total.expected.lost < total.datagrams_lost);
    for (const auto& d : run.datagrams)
        REQUIRE((static_cast<unsigned>(d.bytes[5]) & 1U) == 0);
}

TEST_CASE("faults of the detector are in the frames and in the truth", "[petsim][faults]") {
    auto options = test::point_options(5, 0.04);
    const auto well = test::record(options);
    options.faults.gain_steps = {{7, 0.02, 10}};
    options.faults.silent_units = {{3, 2, 0.02, 1}};
    options.faults.noisy_crystals = {{777, 0.02, 200'000}};
    const auto run = test::record(options);
    const config::Geometry g = test::small_scanner().geometry;
    std::vector<std::uint32_t> unit_of(g.crystal_count());
    for (std::uint32_t unit = 0; unit < g.bdm_count * g.du_count; ++unit) {
        for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local)
            unit_of[g.crystal(unit / g.du_count, unit % g.du_count, local)] = unit;
    }
    const auto middle = static_cast<std::uint64_t>(0.02e12 / test::small_scanner().tick_ps);
    const std::uint64_t margin = 10'000;  // time offsets and the start
    struct Halves {
        double sum = 0;
        double count = 0;
    };
    const auto halves = [&](const test::Recorded& recorded, const auto& counts) {
        std::array<Halves, 2> both;
        for (const auto& t : recorded.truth) {
            if (t.crystal == sim::no_crystal || !counts(t)) continue;
            if (t.time + margin > middle && t.time < middle + margin) continue;
            Halves& half = both[t.time > middle ? 1 : 0];
            half.sum += t.energy;
            ++half.count;
        }
        return both;
    };
    const auto of_module_7 = [&](const sim::TruthRecord& t) {
        return unit_of[t.crystal] / g.du_count == 7 && (t.flags & sim::truth_scattered) == 0;
    };
    const auto gain = halves(run, of_module_7);
    CHECK(gain[1].sum / gain[1].count == Approx(1.1 * gain[0].sum / gain[0].count).epsilon(0.01));
    for (const auto& t : run.truth) {
        if (t.time + margin > middle && t.time < middle + margin) continue;
        const bool stepped = t.time > middle && unit_of[t.crystal] / g.du_count == 7;
        CHECK(((t.flags & sim::truth_gain_step) != 0) == stepped);
    }
    const auto silent =
        halves(run, [&](const sim::TruthRecord& t) { return unit_of[t.crystal] == 3 * g.du_count + 2; });
    CHECK(silent[0].count > 20);
    CHECK(silent[1].count == 0);
    const auto total = run.statistics.total();
    CHECK(total.silenced > 20);
    CHECK(total.hits == total.frames + total.silenced);
    const auto noise = halves(run, [&](const sim::TruthRecord& t) { return t.flags == sim::truth_dark; });
    CHECK(noise[0].count == 0);
    CHECK(noise[1].count == Approx(4000).margin(300));
    CHECK(noise[1].sum / noise[1].count == Approx(511).margin(30));
    // Nothing else has changed in the first half.
    const auto everything = [](const sim::TruthRecord&) { return true; };
    CHECK(halves(run, everything)[0].count == halves(well, everything)[0].count);
}

// The inverse of the calibration against the formulas of the conversion, written out again here.
#include <cmath>
#include <map>
#include <set>

#include "tests/support/catch.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petsim/random/random.hpp"
#include "tools/petsim/simulation/base/inverse_calibration.hpp"

using namespace petacq;

namespace {

struct Converted {
    std::uint32_t crystal;
    float energy;
    std::uint64_t time;
};

Converted convert(const config::Geometry& g, const config::Calibration& calibration, const net::Frame& f) {
    const std::uint32_t locals = g.crystals.y * g.crystals.z;
    const std::size_t unit = f.bdm * g.du_count + f.du;
    const std::uint32_t origin =
        calibration.position_table.at(unit * g.position_size * g.position_size + f.x + f.y * g.position_size);
    REQUIRE(origin < locals);
    const std::uint32_t local =
        origin % g.crystals.z + (g.crystals.y - 1 - origin / g.crystals.z) * g.crystals.z;
    const std::uint32_t cm = g.channels * g.modules.y;
    const std::uint32_t in_ring =
        f.bdm % cm * g.blocks.y * g.crystals.y + f.du / g.blocks.z * g.crystals.y + local / g.crystals.z;
    const std::uint32_t ring =
        f.bdm / cm * g.blocks.z * g.crystals.z + f.du % g.blocks.z * g.crystals.z + local % g.crystals.z;
    Converted out{};
    out.crystal = in_ring + ring * (cm * g.blocks.y * g.crystals.y);
    const std::uint32_t bin = std::min<std::uint32_t>(f.energy / 10U, calibration.bins - 1);
    out.energy = static_cast<float>(f.energy) *
                 calibration.energy_factor.at((unit * locals + local) * calibration.bins + bin);
    const std::int64_t offset = calibration.time_offset.empty() ? 0 : calibration.time_offset.at(out.crystal);
    out.time = f.time + static_cast<std::uint64_t>(offset);
    return out;
}

}  // namespace

TEST_CASE("every frame converts to exactly what the truth says", "[petsim][calibration]") {
    const auto scanner = test::small_scanner();
    const auto calibration = test::small_calibration(GENERATE(0, 40, 100'000));
    auto options = test::point_options();
    options.physics.intrinsic_hz = 20;
    options.physics.dark_hz = 2000;
    const auto run = test::record(scanner, calibration, options);
    std::map<std::pair<std::uint16_t, std::uint64_t>, const test::Sent*> by_sequence;
    for (const auto& d : run.datagrams)
        by_sequence[{d.source, d.sequence}] = &d;
    REQUIRE(run.truth.size() > 10'000);
    std::size_t frames = 0;
    for (const auto& d : run.datagrams)
        frames += d.frames();
    REQUIRE(frames == run.truth.size());
    for (const auto& t : run.truth) {
        const auto frame = by_sequence.at({t.source, t.sequence})->frame(t.index);
        REQUIRE(frame.head_marker == 0xA);
        REQUIRE(frame.tail_marker == 0x5);
        REQUIRE(frame.bdm == t.source);
        const auto c = convert(scanner.geometry, calibration, frame);
        REQUIRE(c.crystal == t.crystal);
        REQUIRE(c.energy == t.energy);
        REQUIRE(c.time == t.time);
        REQUIRE((t.flags & 0xF) != 0);
        REQUIRE(((t.flags & sim::truth_photon) != 0) == (t.annihilation != 0));
    }
}

TEST_CASE("a wanted energy gives the nearest ADC value", "[petsim][calibration]") {
    const auto scanner = test::small_scanner();
    auto calibration = test::small_calibration();
    sim::Random random(5, sim::Purpose::events, 0);
    if (GENERATE(false, true)) {  // an irregular table
        for (float& f : calibration.energy_factor)
            f = static_cast<float>(0.2 + 0.2 * random.uniform());
    }
    const sim::InverseCalibration inverse(scanner, calibration);
    const std::uint32_t locals = scanner.geometry.crystals_per_du();
    const bool smooth = calibration.energy_factor == test::small_calibration().energy_factor;
    for (int i = 0; i < 300; ++i) {
        const std::uint32_t crystal = random.below(scanner.geometry.crystal_count());
        const double wanted = 1000 * random.uniform();
        const auto& channel = inverse.channel(crystal);
        const auto reading = inverse.reading(channel, wanted);
        const float* factor =
            &calibration.energy_factor[(channel.unit * locals + channel.local) * calibration.bins];
        const auto energy_of = [&](std::uint32_t adc) {
            return static_cast<float>(adc) * factor[std::min(adc / 10, calibration.bins - 1)];
        };
        REQUIRE(reading.energy == energy_of(reading.adc));
        double best = 1e9;
        for (std::uint32_t adc = 0; adc < 65536; ++adc) {
            best = std::min(best, std::abs(static_cast<double>(energy_of(adc)) - wanted));
        }
        // Where factors jump, another bin may by chance hold a closer value; one step is still kept.
        REQUIRE(std::abs(static_cast<double>(reading.energy) - wanted) <=
                (smooth ? best * 1.0001 + 1e-4 : best + 0.41));
    }
    CHECK(inverse.reading(inverse.channel(0), 1e9).adc == 65535);
    CHECK(inverse.reading(inverse.channel(0), 0).energy == 0.0F);
}

TEST_CASE("all positions of a crystal are used", "[petsim][calibration]") {
    const auto scanner = test::small_scanner();
    const auto calibration = test::small_calibration();
    const sim::InverseCalibration inverse(scanner, calibration);
    sim::Random random(6, sim::Purpose::events, 0);
    std::size_t used = 0;
    for (std::uint32_t local = 0; local < scanner.geometry.crystals_per_du(); ++local) {
        const auto& channel = inverse.channel(inverse.crystal_of(0, local));
        std::set<std::pair<int, int>> seen;
        for (std::uint32_t i = 0; i < 20 * channel.position_count; ++i) {
            const auto p = inverse.position(channel, static_cast<std::uint32_t>(random.bits()));
            seen.emplace(p.x, p.y);
        }
        REQUIRE(seen.size() == channel.position_count);
        used += seen.size();
    }
    std::size_t valid = 0;
    for (std::size_t i = 0; i < 64UL * 64UL; ++i)
        valid += calibration.position_table[i] < 20 ? 1 : 0;
    CHECK(used == valid);
}

TEST_CASE("hits in crystals without a position are counted, not sent", "[petsim][calibration]") {
    const auto scanner = test::small_scanner();
    auto calibration = test::small_calibration();
    for (auto& entry : calibration.position_table)
        entry = entry == 3 ? 255 : entry;
    const auto run = test::record(scanner, calibration, test::point_options());
    const auto& events = run.statistics.events;
    CHECK(events.unreadable > 0);
    CHECK(events.photons_detected == run.truth.size() + events.unreadable);
}

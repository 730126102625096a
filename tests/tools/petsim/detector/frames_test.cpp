// What a true detector puts into frames, against its values.
#include <algorithm>
#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petsim/detector/make_detector.hpp"

using namespace petacq;

namespace {

sim::DetectorModel quiet_model() {
    sim::DetectorModel m;
    m.seed = 3;
    m.spot_jitter = 0.1;
    return m;
}

sim::Detector make(const sim::DetectorModel& model) {
    return sim::make_detector(test::small_scanner(), model);
}

test::Recorded record(const sim::Detector& detector, const sim::Options& options) {
    return test::record(test::small_scanner(), test::small_calibration(), options, &detector);
}

/// Every crystal gets about `per_crystal` hits of the intrinsic background, in 20 ms.
sim::Options flood(double per_crystal) {
    auto o = test::point_options(0);
    o.physics.intrinsic_hz = per_crystal / o.duration_s;
    return o;
}

/// Unscattered photons of a point at the centre.
sim::Options photons(double mbq, double duration_s) {
    auto o = test::point_options(mbq, duration_s);
    o.physics.scatter = 0;
    return o;
}

}  // namespace

TEST_CASE("positions have the centre and the width of the crystal's spot", "[petsim][detector]") {
    auto model = quiet_model();
    model.spot_sigma = GENERATE(0.15, 0.3);
    const auto detector = make(model);
    const auto run = record(detector, flood(120));
    const auto frames = test::frames_of(run);
    std::vector<test::Moments> x(detector.crystals.size());
    std::vector<test::Moments> y(detector.crystals.size());
    for (std::size_t i = 0; i < frames.size(); ++i) {
        REQUIRE(run.truth[i].x == frames[i].x);
        REQUIRE(run.truth[i].y == frames[i].y);
        x[run.truth[i].true_crystal].add(frames[i].x);
        y[run.truth[i].true_crystal].add(frames[i].y);
    }
    test::Moments pulls;  // (mean - centre) / error
    test::Moments widths;
    constexpr double rounding = 1.0 / 12;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const auto& c = detector.crystals[i];
        REQUIRE(x[i].n > 60);
        const auto compare = [&](const test::Moments& found, double centre, double sigma) {
            // Near the rim of the map positions are cut off.
            if (centre - 4 * sigma < 0 || centre + 4 * sigma > 63) return;
            const double variance = sigma * sigma + rounding;
            pulls.add((found.mean() - centre) / std::sqrt(variance / found.n));
            widths.add(found.variance() * found.n / (found.n - 1) / variance);
        };
        compare(x[i], c.spot_x, c.spot_sigma_x);
        compare(y[i], c.spot_y, c.spot_sigma_y);
    }
    REQUIRE(pulls.n > 2000);
    CHECK(std::abs(pulls.mean()) < 5 / std::sqrt(pulls.n));
    CHECK(pulls.variance() == Approx(1).epsilon(0.1));
    CHECK(widths.mean() == Approx(1).epsilon(0.01));
}

TEST_CASE("crosstalk moves its share of the positions towards a neighbour in the block",
          "[petsim][detector]") {
    auto model = quiet_model();
    model.spot_sigma = 0;
    model.crosstalk = 0.2;
    const auto detector = make(model);
    const auto run = record(detector, flood(50));
    const config::Geometry g = test::small_scanner().geometry;
    // For each crystal those beside it in its block.
    std::vector<std::vector<std::uint32_t>> beside(detector.crystals.size());
    for (std::uint32_t unit = 0; unit < g.bdm_count * g.du_count; ++unit) {
        for (std::uint32_t a = 0; a < g.crystals_per_du(); ++a) {
            for (std::uint32_t b = 0; b < g.crystals_per_du(); ++b) {
                const auto apart = [](std::uint32_t u, std::uint32_t v) { return u > v ? u - v : v - u; };
                if (apart(a / g.crystals.z, b / g.crystals.z) + apart(a % g.crystals.z, b % g.crystals.z) !=
                    1)
                    continue;
                beside[g.crystal(unit / g.du_count, unit % g.du_count, a)].push_back(
                    g.crystal(unit / g.du_count, unit % g.du_count, b));
            }
        }
    }
    double moved = 0;
    for (const auto& t : run.truth) {
        const auto& c = detector.crystals[t.true_crystal];
        const double dx = t.x - double{c.spot_x};
        const double dy = t.y - double{c.spot_y};
        if (std::max(std::abs(dx), std::abs(dy)) <= 0.5001) continue;
        moved += 1;
        // On the first half of the way to one of them, apart from rounding.
        REQUIRE(
            std::any_of(beside[t.true_crystal].begin(), beside[t.true_crystal].end(), [&](std::uint32_t n) {
                const double wx = detector.crystals[n].spot_x - double{c.spot_x};
                const double wy = detector.crystals[n].spot_y - double{c.spot_y};
                const double share = (dx * wx + dy * wy) / (wx * wx + wy * wy);
                return share > 0 && share < 0.5 + 0.71 / std::hypot(wx, wy) &&
                       std::hypot(dx - share * wx, dy - share * wy) < 0.71;
            }));
    }
    // Steps of less than a position do not show.
    const double share = moved / static_cast<double>(run.truth.size());
    CHECK(share < 0.2);
    CHECK(share > 0.2 * 0.7);
}

TEST_CASE("the photopeak of a crystal lies at 511 keV times its gain, with its resolution",
          "[petsim][detector]") {
    auto model = quiet_model();
    model.gain_spread = 0.1;
    model.nonlinearity = 0.2;
    model.resolution_spread = 0.1;
    const auto detector = make(model);
    const auto run = record(detector, photons(5, 0.2));
    std::vector<test::Moments> adc(detector.crystals.size());
    for (const auto& t : run.truth) {
        const auto& c = detector.crystals[t.true_crystal];
        // The energy that the true response gives for the ADC value: it is Gaussian.
        const double energy = sim::energy_of(c, t.adc);
        REQUIRE(energy == Approx(t.true_energy).margin(0.3));
        adc[t.true_crystal].add(energy);
    }
    test::Moments pulls;
    test::Moments widths;
    for (std::size_t i = 0; i < adc.size(); ++i) {
        if (adc[i].n < 50) continue;
        const double sigma = detector.crystals[i].energy_resolution * 511 / 2.3548;
        pulls.add((adc[i].mean() - 511) / (sigma / std::sqrt(adc[i].n)));
        widths.add(adc[i].variance() * adc[i].n / (adc[i].n - 1) / (sigma * sigma));
    }
    REQUIRE(pulls.n > 1000);
    CHECK(std::abs(pulls.mean()) < 5 / std::sqrt(pulls.n));
    CHECK(pulls.variance() == Approx(1).epsilon(0.15));
    CHECK(widths.mean() == Approx(1).epsilon(0.02));
}

TEST_CASE("raw times differ by the true offsets, whatever the calibration says", "[petsim][detector]") {
    const auto scanner = test::small_scanner();
    const auto detector = make(quiet_model());
    auto options = photons(5, 0.05);
    options.physics.time_resolution_ps = 0;
    const auto run = record(detector, options);
    const auto frames = test::frames_of(run);
    std::map<std::uint64_t, std::vector<std::size_t>> photons_of;
    for (std::size_t i = 0; i < frames.size(); ++i)
        photons_of[run.truth[i].annihilation].push_back(i);
    std::size_t pairs = 0;
    for (const auto& [id, hits] : photons_of) {
        if (hits.size() != 2) continue;
        ++pairs;
        const auto ticks = [&](std::size_t i) {
            const auto& c = detector.crystals[run.truth[i].true_crystal];
            return static_cast<double>(frames[i].time) + c.time_offset_ps / scanner.tick_ps;
        };
        REQUIRE(std::abs(ticks(hits[0]) - ticks(hits[1])) < 1.01);  // rounded down, after the same flight
        const auto apart =
            static_cast<std::int64_t>(run.truth[hits[0]].true_time - run.truth[hits[1]].true_time);
        REQUIRE(std::abs(apart) <= 2);
    }
    CHECK(pairs > 3000);
}

TEST_CASE("counts of photons follow the efficiencies of the crystals", "[petsim][detector]") {
    auto detector = make(quiet_model());
    auto options = photons(5, 0.1);
    options.physics.efficiency = 0.4;
    const auto counts = [&] {
        std::vector<double> found(2);
        for (const auto& t : record(detector, options).truth)
            found[t.true_crystal % 2] += 1;
        return found;
    };
    const auto even = counts();
    for (std::size_t i = 0; i < detector.crystals.size(); ++i)
        detector.crystals[i].efficiency = i % 2 == 0 ? 1.5F : 0.5F;
    const auto uneven = counts();
    CHECK(uneven[0] / even[0] == Approx(1.5).epsilon(0.02));
    CHECK(uneven[1] / even[1] == Approx(0.5).epsilon(0.02));
    options.physics.efficiency = 0.7;
    CHECK_THROWS_AS(counts(), std::invalid_argument);
}

TEST_CASE("dead crystals are silent, noisy ones are not", "[petsim][detector]") {
    auto model = quiet_model();
    model.dead = 0.02;
    model.noisy = 0.01;
    model.noise_hz = 20'000;
    const auto detector = make(model);
    auto options = photons(2, 0.05);
    options.physics.dark_hz = 1000;
    const auto run = record(detector, options);
    const auto& events = run.statistics.events;
    CHECK(events.unreadable > 100);
    CHECK(events.photons_detected + events.darks == run.truth.size() + events.unreadable);
    double noise = 0;
    double bright = 0;
    double noisy = 0;
    for (const auto& c : detector.crystals)
        noisy += c.state == sim::CrystalState::noisy ? 1 : 0;
    for (const auto& t : run.truth) {
        const auto state = detector.crystals[t.true_crystal].state;
        REQUIRE(state != sim::CrystalState::dead);
        if (state != sim::CrystalState::noisy || (t.flags & sim::truth_dark) == 0) continue;
        noise += 1;
        bright += t.true_energy > 300 ? 1 : 0;
    }
    const double expected = noisy * (model.noise_hz + 1000.0 / 20) * options.duration_s;
    CHECK(noise == Approx(expected).margin(5 * std::sqrt(expected)));
    CHECK(bright / noise == Approx(0.1 * (1022 - 300) / 1022).epsilon(0.15));
}

TEST_CASE("the truth has what the daemon's calibration makes of every frame, beside what is true",
          "[petsim][detector]") {
    const auto scanner = test::small_scanner();
    auto model = quiet_model();
    model.spot_jitter = 0;
    const auto detector = make(model);
    const bool fits = GENERATE(false, true);
    const auto calibration = fits ? sim::calibration_of(scanner, detector) : test::small_calibration();
    auto options = photons(5, 0.05);
    options.physics.dark_hz = 1000;
    options.faults.corrupt[static_cast<std::size_t>(sim::Field::x)] = 0.02;
    options.faults.corrupt[static_cast<std::size_t>(sim::Field::energy)] = 0.02;
    options.faults.jumps = {{2, 0.02, -1'000'000'000, {}}};
    const auto run = test::record(scanner, calibration, options, &detector);
    const sim::InverseCalibration daemon(scanner, calibration);
    const auto frames = test::frames_of(run);
    sim::Expected found;
    std::size_t right = 0;
    for (std::size_t i = 0; i < frames.size(); ++i) {
        using Status = sim::Conversion::Status;
        const auto& t = run.truth[i];
        const auto c = daemon.convert(frames[i], 0xA, 0x5);
        found.outside_crystal += c.status == Status::outside_crystal ? 1 : 0;
        found.bad_address += c.status == Status::bad_address ? 1 : 0;
        found.bad_time += c.status == Status::bad_time ? 1 : 0;
        REQUIRE((t.crystal == sim::no_crystal) == (c.status != Status::good));
        if (c.status != Status::good) continue;
        REQUIRE(t.crystal == c.crystal);
        REQUIRE(t.energy == c.energy);
        REQUIRE(t.time == c.time);
        right += t.crystal == t.true_crystal ? 1 : 0;
    }
    const auto expected = run.statistics.total().expected;
    CHECK(found.outside_crystal == expected.outside_crystal);
    CHECK(found.bad_address == expected.bad_address);
    CHECK(found.bad_time == expected.bad_time);
    CHECK(expected.bad_address > 10);
    if (!fits) CHECK(expected.outside_crystal > frames.size() / 50);
    const double share =
        static_cast<double>(right) / static_cast<double>(frames.size() - expected.bad_address);
    // A side is 2 sigma away; crystals at the rim have only one neighbour in that direction.
    const auto kept = [](double crystals) {
        const double beyond = std::erfc(2 / std::sqrt(2)) / 2;
        return 1 - 2 * beyond * (crystals - 1) / crystals;
    };
    if (fits) CHECK(share == Approx(kept(4) * kept(5)).margin(0.006));
}

TEST_CASE("clocks and gains follow the temperature that frames carry", "[petsim][detector]") {
    const bool with_detector = GENERATE(false, true);
    const auto detector = make(quiet_model());
    const auto scanner = test::small_scanner();
    const auto simulate = [&](const sim::Options& options) {
        auto run =
            test::record(scanner, test::small_calibration(), options, with_detector ? &detector : nullptr);
        std::sort(run.truth.begin(), run.truth.end(), [](const auto& a, const auto& b) {
            return std::tuple(a.annihilation, a.true_crystal) < std::tuple(b.annihilation, b.true_crystal);
        });
        return run;
    };
    auto options = photons(3, 0.02);
    options.physics.temperature_c = 31;
    options.start_s = 0.99;  // the temperature changes during the simulation
    options.faults.temperature_steps = {{5, 0.005, 12}};
    const auto still = simulate(options);
    options.physics.clock_drift_ps_per_c = 500;
    options.physics.gain_drift_percent_per_c = -2;
    const auto drifting = simulate(options);
    const auto before = test::frames_of(still);
    const auto after = test::frames_of(drifting);
    REQUIRE(before.size() == after.size());
    // Drift also moves the start of the simulation, so that no raw time is negative: the first frame is zero.
    const auto shift = [&](std::size_t i) {
        return static_cast<double>(after[i].time) - static_cast<double>(before[i].time);
    };
    const auto degrees = [&](std::size_t i) { return after[i].temperature_16ths / 16.0; };
    const double ticks = options.physics.clock_drift_ps_per_c / scanner.tick_ps;
    std::size_t compared = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
        REQUIRE(still.truth[i].annihilation == drifting.truth[i].annihilation);
        REQUIRE(std::abs(shift(i) - shift(0) - ticks * (degrees(i) - degrees(0))) < 2 + ticks / 8);
        const double gain = 1 - 0.02 * (degrees(i) - 25);
        if (with_detector) {
            REQUIRE(after[i].energy == Approx(before[i].energy * gain).margin(4));
        } else {  // the calibration is not linear
            REQUIRE(drifting.truth[i].energy ==
                    Approx(static_cast<double>(still.truth[i].energy) * gain).margin(1.5));
        }
        ++compared;
    }
    CHECK(compared > 3000);
}

TEST_CASE("the same stream and truth for any number of threads, with a true detector", "[petsim][detector]") {
    auto model = quiet_model();
    model.crosstalk = 0.1;
    model.noisy = 0.02;
    model.efficiency_spread = 0.1;
    const auto detector = make(model);
    auto options = test::point_options(20, 0.1);
    options.physics.efficiency = 0.4;
    options.physics.intrinsic_hz = 10;
    options.physics.dead_time_ticks = 20'000;
    options.physics.paralysable = true;
    options.physics.block_pile_up_ns = 150;
    options.physics.clock_drift_ps_per_c = 20;
    options.physics.gain_drift_percent_per_c = 1;
    const auto one = record(detector, options);
    options.threads = 3;
    const auto three = record(detector, options);
    CHECK(one.datagrams == three.datagrams);
    REQUIRE(one.truth.size() == three.truth.size());
    CHECK(std::memcmp(one.truth.data(), three.truth.data(), one.truth.size() * sizeof(sim::TruthRecord)) ==
          0);
    CHECK(one.statistics.events == three.statistics.events);
}

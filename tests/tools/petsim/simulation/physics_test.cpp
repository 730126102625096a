// The physics: rates, geometry, energies, times, dead time.
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>

#include "config/base/constants.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petsim/common.hpp"

using namespace petacq;

namespace {

using config::light_mm_per_ps;

using Pairs = std::map<std::uint64_t, std::vector<sim::TruthRecord>>;

Pairs pairs_of(const test::Recorded& run) {
    Pairs out;
    for (const auto& t : run.truth) {
        if (t.annihilation != 0) out[t.annihilation].push_back(t);
    }
    return out;
}

double within_sigmas(double found, double mean, double sigma) {
    return std::abs(found - mean) / sigma;
}

// A plain simulation: isotropic photons from one point, every one followed, against crystal_place alone.
double share_with_both_entering(const config::Scanner& scanner, const sim::Vector3& from, int decays) {
    const geometry::HitFinder finder(scanner);
    sim::Random random(99, sim::Purpose::events, 0);
    int both = 0;
    for (int i = 0; i < decays; ++i) {
        const double cosine = random.symmetric();
        const double sine = std::sqrt(1 - cosine * cosine);
        const double phi = std::numbers::pi * random.symmetric();
        const sim::Vector3 d{sine * std::cos(phi), sine * std::sin(phi), cosine};
        if (finder.find(from, d) && finder.find(from, {-d[0], -d[1], -d[2]})) ++both;
    }
    return static_cast<double>(both) / decays;
}

}  // namespace

TEST_CASE("a point at the centre makes pairs in opposite crystals", "[petsim][physics]") {
    auto options = test::point_options(5, 0.05);
    options.physics.scatter = 0;
    options.physics.time_resolution_ps = 0;
    const auto scanner = test::small_scanner();
    const auto pairs = pairs_of(test::record(options));
    std::size_t whole = 0;
    for (const auto& [id, photons] : pairs) {
        REQUIRE(photons.size() <= 2);
        if (photons.size() < 2) continue;
        ++whole;
        const auto a = config::crystal_place(scanner, photons[0].crystal).front_centre_mm;
        const auto b = config::crystal_place(scanner, photons[1].crystal).front_centre_mm;
        REQUIRE(std::abs(a[0] + b[0]) < 2.5);  // a crystal apart: the pitches
        REQUIRE(std::abs(a[1] + b[1]) < 2.5);
        REQUIRE(std::abs(a[2] + b[2]) < 2.5);
        const auto [early, late] = std::minmax(photons[0].time, photons[1].time);
        REQUIRE(late - early <= 1);  // the same way; a tick of rounding
    }
    CHECK(whole > 5000);
}

TEST_CASE("the nearer crystal sees its photon earlier by the difference of the paths over the speed of light",
          "[petsim][physics]") {
    auto options = test::point_options(5, 0.05);
    options.activity[0].at = {12, 0, 0};
    options.physics.scatter = 0;
    options.physics.time_resolution_ps = 0;
    auto scanner = test::small_scanner();
    scanner.tick_ps = 1;
    const auto run = test::record(scanner, test::small_calibration(), options);
    std::size_t whole = 0;
    for (const auto& [id, photons] : pairs_of(run)) {
        if (photons.size() < 2) continue;
        const auto distance = [&](const sim::TruthRecord& t) {
            const auto p = config::crystal_place(scanner, t.crystal).front_centre_mm;
            return std::hypot(p[0] - 12, p[1], p[2]);
        };
        const double expected = (distance(photons[1]) - distance(photons[0])) / light_mm_per_ps;
        const double found = static_cast<double>(photons[1].time) - static_cast<double>(photons[0].time);
        REQUIRE(std::abs(found - expected) < 2 * 1.7 / light_mm_per_ps + 2);  // anywhere on two front faces
        if (std::abs(expected) > 20) REQUIRE(found * expected > 0);
        ++whole;
    }
    CHECK(whole > 5000);
}

TEST_CASE("time and energy resolution are as requested", "[petsim][physics]") {
    auto options = test::point_options(5, 0.1);
    options.physics.scatter = 0;
    options.physics.time_resolution_ps = 500;
    options.physics.energy_resolution = 0.15;
    auto scanner = test::small_scanner();
    scanner.tick_ps = 1;
    const auto run = test::record(scanner, test::small_calibration(), options);
    double e1 = 0;
    double e2 = 0;
    double n = 0;
    for (const auto& t : run.truth) {
        e1 += t.energy;
        e2 += static_cast<double>(t.energy) * t.energy;
        n += 1;
    }
    CHECK(e1 / n == Approx(511).margin(1));
    CHECK(std::sqrt(e2 / n - e1 / n * (e1 / n)) == Approx(0.15 * 511 / 2.35482).epsilon(0.02));
    double t2 = 0;
    double m = 0;
    for (const auto& [id, photons] : pairs_of(run)) {
        if (photons.size() < 2) continue;
        const double dt = static_cast<double>(photons[1].time) - static_cast<double>(photons[0].time);
        t2 += dt * dt;
        m += 1;
    }
    CHECK(std::sqrt(t2 / m) == Approx(500 / 2.35482 * std::sqrt(2.0)).epsilon(0.03));
}

TEST_CASE("rates follow the activity, the geometry and the efficiency", "[petsim][physics]") {
    const auto scanner = test::small_scanner();
    const sim::Vector3 at{5, -8, GENERATE(0.0, 9.0, 30.0)};  // the last one beyond the end of the scanner
    auto options = test::point_options(8, 0.1);
    options.activity[0].at = at;
    options.physics.scatter = 0;
    options.physics.efficiency = 0.6;
    const auto run = test::record(options);
    const double decays = 8e6 * 0.1;
    CHECK(run.statistics.decays == Approx(decays).epsilon(1e-9));
    constexpr int trials = 1'000'000;
    const double share = share_with_both_entering(scanner, at, trials);
    const double mean = decays * share * 0.36;
    const double sigma = std::sqrt(mean + mean * mean * (1 - share) / (share * trials + 1) + 1);
    CHECK(within_sigmas(static_cast<double>(run.statistics.events.pairs_detected), mean, sigma) < 5);
    // The number of followers matches the prediction of the thinning within Poisson errors.
    CHECK(within_sigmas(static_cast<double>(run.statistics.events.annihilations), run.statistics.followed,
                        std::sqrt(run.statistics.followed)) < 5);
}

TEST_CASE("thinning does not change the physics", "[petsim][physics]") {
    // A distant second source does not reduce the first: the singles of a cylinder agree with the
    // probability of each photon.
    const auto scanner = test::small_scanner();
    const geometry::HitFinder finder(scanner);
    auto options = test::point_options(0, 0.1);
    options.activity[0] = {sim::Shape::cylinder, {2, 1, 3}, {}, 10, 30, 6, 0};
    options.physics.scatter = 0;
    options.physics.efficiency = 0.3;
    const auto run = test::record(options);
    sim::Random random(17, sim::Purpose::events, 0);
    constexpr int trials = 1'000'000;
    int entered = 0;
    for (int i = 0; i < trials; ++i) {
        const double r = 10 * std::sqrt(random.uniform());
        const double a = std::numbers::pi * random.symmetric();
        const double cosine = random.symmetric();
        const double sine = std::sqrt(1 - cosine * cosine);
        const double phi = std::numbers::pi * random.symmetric();
        if (finder.find({2 + r * std::cos(a), 1 + r * std::sin(a), 3 + 15 * random.symmetric()},
                        {sine * std::cos(phi), sine * std::sin(phi), cosine})) {
            ++entered;
        }
    }
    const double mean = 2 * 6e5 * 0.3 * entered / trials;
    const double sigma = std::sqrt(2 * mean + mean * mean / entered);  // photons come in pairs
    CHECK(within_sigmas(static_cast<double>(run.statistics.events.photons_detected), mean, sigma) < 5);
}

TEST_CASE("annihilations are a Poisson process", "[petsim][physics]") {
    auto options = test::point_options(2, 0.5);
    options.physics.scatter = 0;
    const auto scanner = test::small_scanner();
    const auto run = test::record(options);
    constexpr std::size_t bins = 2000;
    std::vector<double> counts(bins, 0.0);
    const auto width = static_cast<double>(config::ticks_of(0.5, scanner)) / bins;
    double n = 0;
    for (const auto& [id, photons] : pairs_of(run)) {
        const auto bin = static_cast<std::size_t>(static_cast<double>(photons[0].time) / width);
        if (bin < bins) counts[bin] += 1;
        n += 1;
    }
    const double mean = n / bins;
    REQUIRE(mean > 50);
    double variance = 0;
    for (const double c : counts)
        variance += (c - mean) * (c - mean);
    variance /= bins - 1;
    // Variance over mean is 1 with a spread of sqrt(2 / bins).
    CHECK(variance / mean == Approx(1).margin(5 * std::sqrt(2.0 / bins)));
}

TEST_CASE("activity decays", "[petsim][physics]") {
    auto options = test::point_options(4, 0.4);
    options.activity[0].half_life_s = 0.1;
    options.physics.scatter = 0;
    const auto scanner = test::small_scanner();
    const auto run = test::record(options);
    const std::uint64_t half = config::ticks_of(0.1, scanner);
    std::array<double, 4> counts{};
    for (const auto& t : run.truth)
        counts.at(std::min<std::size_t>(t.time / half, 3)) += 1;
    for (std::size_t i = 1; i < 4; ++i) {
        CHECK(counts[i] / counts[i - 1] == Approx(0.5).margin(4 * std::sqrt(1 / counts[i])));
    }
    CHECK(run.statistics.decays == Approx(4e6 * 0.1 / std::numbers::ln2 * (1 - 1.0 / 16)).epsilon(1e-9));
}

TEST_CASE("activity follows a curve, and decays besides", "[petsim][physics]") {
    auto options = test::point_options(4, 0.4);
    options.activity[0].half_life_s = GENERATE(0.0, 0.1);
    const double half_life_s = options.activity[0].half_life_s;
    options.activity[0].curve = {{0.05, 0}, {0.15, 2}, {0.25, 1}};
    options.physics.scatter = 0;
    const auto run = test::record(options);
    const std::uint64_t tenth = config::ticks_of(0.1, test::small_scanner());
    std::array<double, 4> counts{};
    for (const auto& t : run.truth)
        counts.at(std::min<std::size_t>(t.time / tenth, 3)) += 1;
    // By small steps: the curve, and what the decay leaves.
    std::array<double, 4> expected{};
    constexpr int steps = 4000;
    for (int i = 0; i < steps; ++i) {
        const double t = 0.4 * (i + 0.5) / steps;
        const double share = t < 0.05 ? 0 : t < 0.15 ? 20 * (t - 0.05) : t < 0.25 ? 2 - 10 * (t - 0.15) : 1;
        const double left = half_life_s > 0 ? std::exp2(-t / half_life_s) : 1;
        expected.at(static_cast<std::size_t>(t / 0.1)) += share * left / (steps / 4);
    }
    const double all = std::accumulate(expected.begin(), expected.end(), 0.0);
    const double counted = std::accumulate(counts.begin(), counts.end(), 0.0);
    for (std::size_t i = 0; i < 4; ++i) {
        CAPTURE(i);
        const double of_all = expected.at(i) / all;
        CHECK(counts.at(i) / counted == Approx(of_all).margin(4 * std::sqrt(2 * of_all / counted)));
    }
    CHECK(run.statistics.decays == Approx(4e6 * 0.1 * all).epsilon(1e-4));
}

TEST_CASE("scattered photons lose energy and direction", "[petsim][physics]") {
    auto options = test::point_options(5, 0.05);
    options.physics.scatter = 1;
    options.physics.energy_resolution = 0;
    const auto scanner = test::small_scanner();
    const auto run = test::record(options);
    CHECK(run.statistics.events.scattered == run.statistics.events.annihilations);
    int scattered = 0;
    int opposite = 0;
    for (const auto& [id, photons] : pairs_of(run)) {
        for (const auto& t : photons) {
            const bool is_scattered = (t.flags & sim::truth_scattered) != 0;
            REQUIRE(static_cast<double>(t.energy) < 511.4);  // whole ADC counts
            REQUIRE(static_cast<double>(t.energy) > (is_scattered ? 511.0 / 3 - 0.4 : 510.6));
            scattered += is_scattered ? 1 : 0;
        }
        if (photons.size() < 2) continue;
        // Through the centre, Compton's formula ties the energy to the angle.
        const auto a = config::crystal_place(scanner, photons[0].crystal).front_centre_mm;
        const auto b = config::crystal_place(scanner, photons[1].crystal).front_centre_mm;
        const double product = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        const double cosine = -product / std::hypot(a[0], a[1], a[2]) / std::hypot(b[0], b[1], b[2]);
        const double energy = std::min(photons[0].energy, photons[1].energy);
        REQUIRE(2 - 511 / energy == Approx(cosine).margin(0.12));
        opposite += cosine > 0.99 ? 1 : 0;
    }
    CHECK(scattered > 1000);
    CHECK(opposite < scattered / 5);
}

TEST_CASE("backgrounds have their rates and kinds", "[petsim][physics]") {
    auto options = test::point_options(0, 0.5);
    options.physics.intrinsic_hz = 30;
    options.physics.dark_hz = 500;
    const auto scanner = test::small_scanner();
    const auto run = test::record(options);
    double intrinsic = 0;
    double dark = 0;
    for (const auto& t : run.truth) {
        intrinsic += t.flags == sim::truth_intrinsic ? 1 : 0;
        dark += t.flags == sim::truth_dark ? 1 : 0;
    }
    const double crystals = scanner.geometry.crystal_count();
    CHECK(within_sigmas(intrinsic, 30 * 0.5 * crystals, std::sqrt(30 * 0.5 * crystals)) < 5);
    CHECK(within_sigmas(dark, 500 * 0.5 * 144, std::sqrt(500 * 0.5 * 144)) < 5);
    CHECK(intrinsic + dark == static_cast<double>(run.truth.size()));
}

TEST_CASE("a detector unit is dead after each hit it takes, not after those it misses", "[petsim][physics]") {
    auto options = test::point_options(0, 0.05);
    options.physics.dark_hz = 50'000;
    options.physics.dead_time_ticks = 1'000'000;  // 15.6 us: 0.78 of the mean gap
    const auto scanner = test::small_scanner();
    const auto calibration = test::small_calibration(0);
    const auto with = test::record(scanner, calibration, options);
    std::map<std::uint32_t, std::uint64_t> last;
    auto sorted = with.truth;
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
    const sim::InverseCalibration inverse(scanner, calibration);
    for (const auto& t : sorted) {
        const std::uint32_t unit = inverse.channel(t.crystal).unit;
        if (last.count(unit) != 0) REQUIRE(t.time - last[unit] >= 1'000'000);
        last[unit] = t.time;
    }
    const auto total = with.statistics.total();
    CHECK(total.hits == total.frames + total.dead_time);
    CHECK(total.frames == with.truth.size());
    // Not paralysable: m = n / (1 + n tau).
    const double n = 50'000;
    const double share = 1 / (1 + n * 1e6 * 15.625e-12);
    CHECK(static_cast<double>(total.frames) / static_cast<double>(total.hits) == Approx(share).epsilon(0.01));
    options.physics.dead_time_ticks = 0;
    CHECK(test::record(scanner, calibration, options).statistics.total().dead_time == 0);
}

TEST_CASE("temperatures are near the mean and change slowly", "[petsim][physics]") {
    auto options = test::point_options(0, 4);
    options.physics.dark_hz = 20;
    options.physics.temperature_c = -3;
    const auto run = test::record(options);
    std::map<std::pair<int, int>, int> last;
    for (const auto& d : run.datagrams) {
        for (std::size_t i = 0; i < d.frames(); ++i) {
            const auto f = d.frame(i);
            REQUIRE(std::abs(f.temperature_16ths + 48) <= 16 * 3.6);
            const auto [entry, fresh] = last.try_emplace({f.bdm, f.du}, f.temperature_16ths);
            if (!fresh) REQUIRE(std::abs(entry->second - f.temperature_16ths) <= 1);
            entry->second = f.temperature_16ths;
        }
    }
    CHECK(last.size() == 144);
}

TEST_CASE("the temperature of a module steps at a whole second and nowhere else", "[petsim][physics]") {
    auto options = test::point_options(0, 3);
    options.physics.dark_hz = 20;
    options.start_s = 7;
    const auto well = test::record(options);
    options.faults.temperature_steps = {{9, 0.5, 30}, {9, 2, -10}};
    const auto run = test::record(options);
    const double tick_s = test::small_scanner().tick_ps * 1e-12;
    const auto before = test::frames_of(well);
    const auto after = test::frames_of(run);
    REQUIRE(before.size() == after.size());
    std::array<int, 3> seen{};
    for (std::size_t i = 0; i < after.size(); ++i) {
        const double second = static_cast<double>(after[i].time) * tick_s - options.start_s;
        if (std::abs(second - std::round(second)) < 1e-3) continue;  // time offsets
        const int warmer = after[i].bdm != 9 || second < 1 ? 0 : second < 2 ? 30 : 20;
        REQUIRE(after[i].temperature_16ths - before[i].temperature_16ths == 16 * warmer);
        if (after[i].bdm == 9) ++seen.at(static_cast<std::size_t>(second));
    }
    for (const int frames : seen)
        CHECK(frames > 50);
}

TEST_CASE("a rate is reached by scaling the activity", "[petsim][physics]") {
    auto options = test::point_options(3, 0.2);
    options.physics.dark_hz = 500;
    options.physics.dead_time_ticks = 20'000;
    options.activity[0].half_life_s = GENERATE(0.0, 0.15);
    const auto scanner = test::small_scanner();
    const auto calibration = test::small_calibration();
    options.activity_scale = sim::scale_for_rate(scanner, calibration, options, 2e6);
    const auto run = test::record(scanner, calibration, options);
    // Dead time makes a decaying source a little more efficient as it fades.
    CHECK(static_cast<double>(run.truth.size()) / 0.2 == Approx(2e6).epsilon(0.03));
    CHECK_THROWS_AS(sim::scale_for_rate(scanner, calibration, options, 1e4), std::invalid_argument);
    options.physics.efficiency = 0;
    CHECK_THROWS_AS(sim::scale_for_rate(scanner, calibration, options, 2e6), std::invalid_argument);
}

// Time offsets against those of the simulator's true detector.
#include "tools/petcal/estimate/pairs/time_offsets.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <set>
#include <utility>

#include "config/base/constants.hpp"
#include "config/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petcal/estimate/simulated_scan.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petcal/estimate/pairs/known_source.hpp"

using namespace petacq;

namespace {

using config::light_mm_per_ps;
constexpr std::uint64_t window = 640;  // 10 ns

sim::Detector late_detector(double spot_sigma = 0, double spread_ps = 1000, std::uint64_t seed = 3) {
    sim::DetectorModel model;
    model.seed = seed;
    model.time_spread_ps = spread_ps;
    model.spot_sigma = spot_sigma;
    return sim::make_detector(test::small_scanner(), model);
}

std::vector<estimate::TimeDifference> differences(const std::vector<test::SimulatedPair>& pairs,
                                                  const estimate::KnownSource& source) {
    const config::Scanner scanner = test::small_scanner();
    std::vector<estimate::TimeDifference> out;
    for (const test::SimulatedPair& p : pairs) {
        const auto path = path_difference_mm(source, crystal_place(scanner, p.a).front_centre_mm,
                                             crystal_place(scanner, p.b).front_centre_mm);
        if (!path) continue;
        out.push_back({p.a, p.b, p.ticks - static_cast<float>(*path / light_mm_per_ps / scanner.tick_ps)});
    }
    return out;
}

/// Of the determined crystals, ps; the common mean is free.
test::Moments errors(const estimate::TimeOffsets& found, const sim::Detector& detector) {
    test::Moments m;
    for (std::size_t i = 0; i < found.ticks.size(); ++i) {
        if (!std::isfinite(found.error_ticks[i])) continue;
        m.add(found.ticks[i] * test::small_scanner().tick_ps - double{detector.crystals[i].time_offset_ps});
    }
    return m;
}

const estimate::KnownSource wide_cylinder{{0, 0, -25}, {0, 0, 25}, 15};

/// A scan of the wide cylinder with 500 pairs per crystal.
std::vector<estimate::TimeDifference> five_hundred(const sim::Detector& detector) {
    const config::Scanner scanner = test::small_scanner();
    auto data =
        differences(test::simulate_pairs(scanner, test::cylinder_scan(15, 50, 5, 0.8, 1), detector, window),
                    wide_cylinder);
    const std::size_t wanted = std::size_t{250} * scanner.geometry.crystal_count();
    REQUIRE(data.size() > wanted);
    data.resize(wanted);
    return data;
}

std::string refusal(std::size_t crystals, const std::vector<estimate::TimeDifference>& data) {
    try {
        (void)estimate::time_offsets(crystals, data);
    } catch (const config::Error& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("time offsets: 20 ps rms at 500 pairs per crystal from 1 ns") {
    const sim::Detector detector = late_detector();
    const auto data = five_hundred(detector);
    const auto found = estimate::time_offsets(detector.crystals.size(), data);
    const auto error = errors(found, detector);
    CAPTURE(found.steps, found.groups);
    CHECK(error.n == 2880);
    CHECK(error.sigma() < 20);
    CHECK(found.undetermined.empty());
    CHECK(found.groups == 1);
    CHECK(std::accumulate(found.pairs.begin(), found.pairs.end(), 0U) == 2 * data.size());
    // The stated errors: those of the pairs (400 ps FWHM of each single) and of the offsets.
    CHECK(found.sigma_ticks * 15.625 == Approx(240).epsilon(0.1));
    CHECK(found.residual_rms == Approx(found.sigma_ticks).epsilon(0.1));
    test::Moments pulls;
    const double mean = error.mean();
    for (std::size_t i = 0; i < found.ticks.size(); ++i) {
        const double wrong = found.ticks[i] * 15.625 - double{detector.crystals[i].time_offset_ps} - mean;
        pulls.add(wrong / (found.error_ticks[i] * 15.625));
    }
    CHECK(pulls.sigma() == Approx(1).epsilon(0.15));
    test::Moments offsets;
    for (const double t : found.ticks)
        offsets.add(t);
    CHECK(offsets.mean() == Approx(0).margin(1e-9));
}

// 7 % of the hits lie in a neighbour, whose offset is another one.
TEST_CASE("time offsets: spots that overlap do not draw them towards those of the neighbours") {
    const sim::Detector detector = late_detector(0.25, 500);
    estimate::TimeOffsetOptions options;
    options.neighbours = estimate::neighbours_in_units(test::small_scanner());
    const auto found = estimate::time_offsets(detector.crystals.size(), five_hundred(detector), options);
    const auto error = errors(found, detector);
    CAPTURE(error.sigma(), found.sigma_ticks * 15.625, found.in_peak, found.steps);
    CHECK(error.n == 2880);
    CHECK(error.sigma() < 15);
    CHECK(found.beside == Approx(0.07).margin(0.015));
    double stated = 0;
    for (const double e : found.error_ticks)
        stated += e * 15.625 / static_cast<double>(found.error_ticks.size());
    CHECK(stated == Approx(error.sigma()).epsilon(0.15));
}

// Frames with the light of two crystals have the time of the earlier one.
TEST_CASE("time offsets: stated errors hold where photons scatter in the crystals") {
    const config::Scanner scanner = test::small_scanner();
    const sim::Detector detector = late_detector(0.2, 450, 23);
    sim::Options scan = test::cylinder_scan(16, 56, 5, 2.5, 1);
    scan.crystals.model = sim::CrystalModel::scatter;
    scan.seed = 23;
    const auto data =
        differences(test::simulate_pairs(scanner, scan, detector, window), {{0, 0, -28}, {0, 0, 28}, 16});
    estimate::TimeOffsetOptions options;
    options.neighbours = estimate::neighbours_in_units(scanner);
    const auto found = estimate::time_offsets(detector.crystals.size(), data, options);
    const double mean = errors(found, detector).mean();
    double inside = 0;
    double all = 0;
    for (std::size_t i = 0; i < found.ticks.size(); ++i) {
        if (!std::isfinite(found.error_ticks[i])) continue;
        const double wrong = found.ticks[i] * 15.625 - double{detector.crystals[i].time_offset_ps} - mean;
        inside += std::abs(wrong) < found.error_ticks[i] * 15.625 ? 1 : 0;
        all += 1;
    }
    CAPTURE(inside / all, all);
    CHECK(all > 2500);
    CHECK(inside / all > 0.63);
    CHECK(inside / all < 0.73);
}

TEST_CASE("time offsets: neighbours are in the same block") {
    const config::Geometry g = test::small_scanner().geometry;
    const estimate::Neighbours all = estimate::neighbours_in_units(test::small_scanner());
    REQUIRE(all.size() == g.crystal_count());
    const auto place = [&](std::uint32_t crystal) {
        return std::pair(crystal % g.crystals_in_ring(), crystal / g.crystals_in_ring());
    };
    std::size_t links = 0;
    for (std::uint32_t c = 0; c < all.size(); ++c) {
        const auto [column, ring] = place(c);
        for (const std::uint32_t n : all[c]) {
            const auto [other_column, other_ring] = place(n);
            CHECK(column / g.crystals.y == other_column / g.crystals.y);
            CHECK(ring / g.crystals.z == other_ring / g.crystals.z);
            CHECK(std::abs(int(column) - int(other_column)) + std::abs(int(ring) - int(other_ring)) == 1);
        }
        links += all[c].size();
    }
    // A block of 5 x 4 crystals has 4 x 4 neighbours along y and 5 x 3 along z.
    CHECK(links == std::size_t{144} * 2 * (4 * 4 + 5 * 3));
}

// All seeds: the figures of docs/how-to/calibrate.md.
TEST_CASE("time offsets: figures", "[.figures]") {
    const std::uint64_t seed = GENERATE(3, 4, 5, 6, 7);
    for (const double spread_ps : {250.0, 500.0, 1000.0}) {
        const sim::Detector detector = late_detector(0.25, spread_ps, seed);
        estimate::TimeOffsetOptions options;
        const auto data = five_hundred(detector);
        const auto alone = estimate::time_offsets(detector.crystals.size(), data, options);
        options.neighbours = estimate::neighbours_in_units(test::small_scanner());
        const auto found = estimate::time_offsets(detector.crystals.size(), data, options);
        std::printf("seed %d, offsets of %4.0f ps: %.1f ps rms; without neighbours %.1f ps\n", int(seed),
                    spread_ps, errors(found, detector).sigma(), errors(alone, detector).sigma());
    }
}

TEST_CASE("time offsets: with dead crystals and a module that is 5 ns late") {
    sim::Detector detector = late_detector();
    const config::Geometry g = test::small_scanner().geometry;
    const std::set<std::uint32_t> dead{0, 7, 8, 1500, 2879};
    for (const std::uint32_t k : dead)
        detector.crystals[k].state = sim::CrystalState::dead;
    for (std::uint32_t du = 0; du < g.du_count; ++du) {
        for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local)
            detector.crystals[g.crystal(5, du, local)].time_offset_ps -= 5000;
    }
    const auto found = estimate::time_offsets(detector.crystals.size(), five_hundred(detector));
    CHECK(errors(found, detector).sigma() < 20);
    CHECK(std::set(found.undetermined.begin(), found.undetermined.end()) == dead);
    for (const std::uint32_t k : dead) {
        CHECK(found.ticks[k] == 0);
        CHECK(found.pairs[k] == 0);
    }
}

TEST_CASE("time offsets: randoms do not move them") {
    const config::Scanner scanner = test::small_scanner();
    const sim::Detector detector = late_detector();
    const auto pairs =
        test::simulate_pairs(scanner, test::cylinder_scan(15, 50, 60, 0.1, 1), detector, window);
    const auto randoms = std::count_if(pairs.begin(), pairs.end(), [](const auto& p) { return p.random; });
    CAPTURE(randoms, pairs.size());
    CHECK(3 * randoms > static_cast<std::ptrdiff_t>(pairs.size()));
    const auto found = estimate::time_offsets(detector.crystals.size(), differences(pairs, wide_cylinder));
    const auto error = errors(found, detector);
    CHECK(error.n == 2880);
    CHECK(error.sigma() < 25);
}

// Patterns that are equal at phi and phi + pi change no difference of opposite crystals.
TEST_CASE("time offsets: a line source on the axis leaves patterns free, a cylinder does not") {
    const config::Scanner scanner = test::small_scanner();
    const sim::Detector detector = late_detector();
    sim::Options scan = test::cylinder_scan(15, 50, 5, 0.32, 1);
    scan.activity[0].shape = sim::Shape::line;
    scan.activity[0].at = {0, 0, -25};
    scan.activity[0].to = {0, 0, 25};
    auto line =
        differences(test::simulate_pairs(scanner, scan, detector, window), {{0, 0, -25}, {0, 0, 25}, 1.6});
    auto wide =
        differences(test::simulate_pairs(scanner, test::cylinder_scan(15, 50, 5, 0.33, 1), detector, window),
                    wide_cylinder);
    const std::size_t pairs = std::size_t{100} * detector.crystals.size();
    REQUIRE(line.size() >= pairs);
    REQUIRE(wide.size() >= pairs);
    line.resize(pairs);
    wide.resize(pairs);
    const auto of_line = estimate::time_offsets(detector.crystals.size(), line);
    const auto of_wide = estimate::time_offsets(detector.crystals.size(), wide);
    CHECK(errors(of_wide, detector).sigma() < 25);
    CHECK(errors(of_line, detector).sigma() > 40);
    // The stated errors know of those patterns.
    double stated = 0;
    for (const double e : of_line.error_ticks)
        stated += std::pow(e * 15.625, 2) / static_cast<double>(of_line.error_ticks.size());
    // Most of the error is a few patterns, so that one scan says little about its size.
    CHECK(std::sqrt(stated) > 0.75 * errors(of_line, detector).sigma());
    CHECK(std::sqrt(stated) < 2.5 * errors(of_line, detector).sigma());
}

TEST_CASE("time offsets: groups of crystals, and crystals with too few pairs") {
    sim::Random random(1, sim::Purpose::events, 0);
    std::vector<estimate::TimeDifference> data;
    const std::vector<double> late{3, -1, 5, 100, 108, 0};
    const auto add = [&](std::uint32_t a, std::uint32_t b, int count) {
        for (int i = 0; i < count; ++i) {
            const double noise = 4 * random.normal();
            if (i % 2 == 0)
                data.push_back({a, b, static_cast<float>(late[b] - late[a] + noise)});
            else
                data.push_back({b, a, static_cast<float>(late[a] - late[b] + noise)});
        }
    };
    add(0, 1, 3000);
    add(1, 2, 3000);
    add(3, 4, 3000);
    add(5, 0, 49);
    const auto found = estimate::time_offsets(6, data);
    CHECK(found.groups == 2);
    CHECK(found.undetermined == std::vector<std::uint32_t>{5});
    CHECK(found.pairs == std::vector<std::uint32_t>{3049, 6000, 3000, 3000, 3000, 49});
    const std::vector<double> expected{7.0 / 3 - 3, 7.0 / 3 + 1, 7.0 / 3 - 5, 4, -4, 0};
    for (std::size_t i = 0; i < 6; ++i) {
        CAPTURE(i);
        CHECK(found.ticks[i] == Approx(expected[i]).margin(0.4));
    }
}

TEST_CASE("time offsets: insufficient data are refused") {
    sim::Random random(1, sim::Purpose::events, 0);
    std::vector<estimate::TimeDifference> data;
    for (int i = 0; i < 4000; ++i) {
        const std::uint32_t a = random.below(20);
        data.push_back({a, 20 + random.below(20), static_cast<float>(400 * random.symmetric())});
    }
    CHECK_THAT(refusal(40, data), petacq::test::contains("no peak above the randoms"));
    CHECK_THAT(refusal(400, data), petacq::test::contains("40 of 400 crystals have 50 or more pairs"));
    CHECK_THAT(refusal(40, {}),
               petacq::test::contains("expected at least 20: found 0 prompts, about 500 are needed"));
    {  // each of 40 crystals in 10 of 200 prompts
        std::vector<estimate::TimeDifference> few;
        for (std::uint32_t i = 0; i < 200; ++i)
            few.push_back({i % 20, 20 + (i + i / 20) % 20, 0});
        CHECK_THAT(refusal(40, few), petacq::test::contains("found 200 prompts, about 1000 are needed"));
    }
    CHECK_THROWS_AS(estimate::time_offsets(39, data), std::invalid_argument);
    estimate::TimeOffsetOptions of_another;
    of_another.neighbours.resize(41);
    CHECK_THROWS_AS(estimate::time_offsets(40, data, of_another), std::invalid_argument);
    CHECK_THROWS_AS(estimate::time_offsets(40, std::vector<estimate::TimeDifference>{{3, 3, 0}}),
                    std::invalid_argument);
}

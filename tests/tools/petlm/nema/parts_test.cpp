// The parts of petlm nema against analytic results and slow, obvious references.
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>

#include "daemon/sinogram/back_projection.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petlm/support.hpp"
#include "tools/petlm/nema/line_source.hpp"
#include "tools/petlm/nema/runs.hpp"
#include "tools/petlm/nema/slices.hpp"
#include "tools/petlm/nema/widths.hpp"

using namespace petacq;

namespace {

std::vector<double> gaussian(double fwhm, double middle, double step, std::size_t count) {
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) {
        const double x = (static_cast<double>(i) * step - middle) / fwhm;
        values.push_back(1000 * std::exp(-4 * std::numbers::ln2 * x * x));
    }
    return values;
}

/// Line integrals through a disk of value 1.
sinogram::Projections disk(double x, double y, double radius, std::size_t angles, std::size_t radial,
                           double width) {
    sinogram::Projections p{angles, radial, width, {}};
    for (std::size_t row = 0; row < angles; ++row) {
        const double phi = (static_cast<double>(row) + 0.5) * std::numbers::pi / static_cast<double>(angles);
        for (std::size_t column = 0; column < radial; ++column) {
            const double s = (static_cast<double>(column) + 0.5) * width - p.radius_mm();
            const double from_middle = s - x * std::cos(phi) - y * std::sin(phi);
            p.values.push_back(2 * std::sqrt(std::max(0.0, radius * radius - from_middle * from_middle)));
        }
    }
    return p;
}

}  // namespace

TEST_CASE("nema: widths of a Gaussian are those of the formula, wherever it lies", "[nema]") {
    for (const double middle : {10.0, 10.03, 10.05, 9.91}) {
        const auto found = nema::widths_of(gaussian(1.7, middle, 0.1, 201), 0.1);
        REQUIRE(found);
        CAPTURE(middle);
        CHECK(found->fwhm == Approx(1.7).epsilon(0.002));
        CHECK(found->fwtm == Approx(1.7 * std::sqrt(std::log2(10.0))).epsilon(0.002));
        CHECK(found->peak == Approx(middle).margin(0.001));
        CHECK(found->height == Approx(1000).epsilon(0.0005));
    }
}

TEST_CASE("nema: widths come from linear interpolation and the height from the parabola", "[nema]") {
    // The parabola through 90, 100, 94 has its top at 1/8 with 100.125.
    const std::vector<double> values = {0, 20, 90, 100, 94, 10, 0, 0};
    const auto found = nema::widths_of(values, 2);
    REQUIRE(found);
    CHECK(found->height == Approx(100.125));
    CHECK(found->peak == Approx(2 * 3.125));
    const double low = 1 + (50.0625 - 20) / 70;
    const double high = 4 + (94 - 50.0625) / 84;
    CHECK(found->fwhm == Approx(2 * (high - low)));
    const double low_tenth = 10.0125 / 20;
    const double high_tenth = 4 + (94 - 10.0125) / 84;
    CHECK(found->fwtm == Approx(2 * (high_tenth - low_tenth)));
}

TEST_CASE("nema: no widths without a peak that falls off on both sides", "[nema]") {
    using Values = std::vector<double>;
    CHECK_FALSE(nema::widths_of(Values{}, 1));
    CHECK_FALSE(nema::widths_of(Values{1, 2}, 1));
    CHECK_FALSE(nema::widths_of(Values{3, 2, 1, 0}, 1));
    CHECK_FALSE(nema::widths_of(Values{0, 1, 2, 3}, 1));
    CHECK_FALSE(nema::widths_of(Values{0, 0, 0, 0}, 1));
    CHECK_FALSE(nema::widths_of(Values{1, 1, 1, 1}, 1));
    CHECK_FALSE(nema::widths_of(Values{0, 5, 4, 4, 4}, 1));  // not to a half
    const auto no_tenth = nema::widths_of(Values{0, 5, 2, 1, 1}, 1);
    REQUIRE(no_tenth);
    CHECK(std::isnan(no_tenth->fwtm));
    CHECK_FALSE(nema::widths_of(Values{-3, -1, -3}, 1));
}

TEST_CASE("nema: single-slice rebinning agrees with the places of the crystals", "[nema]") {
    const config::Scanner scanner = test::export_scanner();
    constexpr double depth = 3;
    const nema::SliceBins bins(scanner, config::DepthOfInteraction::fixed(depth), 0.7);
    const auto in_ring = scanner.geometry.crystals_in_ring();
    REQUIRE(bins.slices() == 2 * scanner.geometry.rings() - 1);
    REQUIRE(bins.lines().angles() == in_ring / 2);
    const auto place = [&](std::uint32_t crystal) {
        return config::point_at_depth(config::crystal_place(scanner, crystal), depth);
    };
    std::mt19937 random(3);
    std::uint64_t inside = 0;
    for (int i = 0; i < 20'000; ++i) {
        const auto a = static_cast<std::uint32_t>(random() % scanner.geometry.crystal_count());
        const auto b = static_cast<std::uint32_t>(random() % scanner.geometry.crystal_count());
        if (a % in_ring == b % in_ring) continue;
        const auto p = place(a);
        const auto q = place(b);
        const std::size_t bin = bins.of(a, b);
        CHECK(bin == bins.of(b, a));
        // The distance of the line from the axis, with the sign of the normal that points to 0..180 degrees.
        double nx = q[1] - p[1];
        double ny = p[0] - q[0];
        const double length = std::hypot(nx, ny);
        if (ny < 0 || (ny == 0 && nx < 0)) {
            nx = -nx;
            ny = -ny;
        }
        const double s = (p[0] * nx + p[1] * ny) / length;
        const double phi = std::atan2(ny, nx) * 180 / std::numbers::pi;
        if (bin == nema::SliceBins::outside) {
            CHECK(std::abs(s) > bins.lines().radius_mm() - 1e-6);
            continue;
        }
        ++inside;
        const std::size_t in_slice = bin % bins.in_slice();
        const auto row = static_cast<std::uint32_t>(in_slice / bins.lines().radial());
        const auto column = static_cast<std::uint32_t>(in_slice % bins.lines().radial());
        const double half_angle = 90.0 / bins.lines().angles();
        // At an edge, rounding decides.
        double away = std::abs(phi - bins.lines().angle_deg(row));
        double sign = 1;
        if (away > 90) {
            away = 180 - away;
            sign = -1;
        }
        CHECK(away <= half_angle + 1e-6);
        CHECK(std::abs(sign * s - bins.lines().radial_mm(column)) <= bins.lines().width_mm() / 2 + 1e-6);
        CHECK(std::abs(0.5 * (p[2] + q[2]) - bins.slice_mm(bin / bins.in_slice())) <=
              bins.thickness_mm() / 2 + 1e-6);
    }
    CHECK(inside > 14'000);
}

TEST_CASE("nema: lines of any scanner go to the bins of their positions", "[nema]") {
    for (const char* const name : {"box", "insert", "phoswich", "unequal-blocks", "two-rings"}) {
        INFO(name);
        const config::Scanner scanner = config::load_scanner(PETACQ_SOURCE_DIR "/config/examples/scanners/" +
                                                             std::string(name) + ".scanner.json");
        constexpr double depth = 3;
        const nema::SliceBins bins(scanner, config::DepthOfInteraction::fixed(depth), 0.5);
        std::mt19937 random(3);
        int inside = 0;
        int near = 0;
        for (int i = 0; i < 20'000; ++i) {
            const auto a = static_cast<std::uint32_t>(random() % scanner.geometry.crystal_count());
            const auto b = static_cast<std::uint32_t>(random() % scanner.geometry.crystal_count());
            const auto p = config::point_at_depth(config::crystal_place(scanner, a), depth);
            const auto q = config::point_at_depth(config::crystal_place(scanner, b), depth);
            const double length = std::hypot(q[0] - p[0], q[1] - p[1]);
            if (length < 1) continue;
            const std::size_t bin = bins.of(a, b);
            REQUIRE(bin == bins.of(b, a));
            if (bin == nema::SliceBins::outside) continue;
            ++inside;
            REQUIRE(bin < bins.bins());
            const auto column = static_cast<std::uint32_t>(bin % bins.lines().radial());
            const auto row = static_cast<std::uint32_t>(bin % bins.in_slice() / bins.lines().radial());
            const double phi = bins.lines().angle_deg(row) * std::numbers::pi / 180;
            // Along the normal of the bin, the middle of the line is as far from the axis as the bin says,
            // but for the part of the angle that a bin covers.
            const double s = (p[0] + q[0]) / 2 * std::cos(phi) + (p[1] + q[1]) / 2 * std::sin(phi);
            const double reach =
                std::hypot(p[0] + q[0], p[1] + q[1]) / 2 * std::numbers::pi / (2 * bins.lines().angles());
            CHECK(std::abs(s - bins.lines().radial_mm(column)) < bins.lines().width_mm() / 2 + reach + 1e-6);
            const double along = (q[0] - p[0]) * std::cos(phi) + (q[1] - p[1]) * std::sin(phi);
            CHECK(std::abs(along) / length < std::sin(std::numbers::pi / (2 * bins.lines().angles())) + 1e-6);
            if (std::abs(0.5 * (p[2] + q[2]) - bins.slice_mm(bin / bins.in_slice())) <=
                bins.thickness_mm() / 2 + 2e-3)
                ++near;
        }
        CHECK(inside > 15'000);
        CHECK(near == inside);
    }
}

TEST_CASE("nema: angles without a line through the source take its place from the others", "[nema]") {
    const nema::SliceBins bins(test::export_scanner(), config::DepthOfInteraction::fixed(3), 0.7);
    const std::size_t radial = bins.lines().radial();
    constexpr double x = 7;
    constexpr double y = -4;
    std::mt19937 random(4);
    std::vector<std::uint64_t> sum(bins.in_slice());
    std::vector<std::size_t> expected;
    for (std::size_t row = 0; row < bins.lines().angles(); ++row) {
        for (std::size_t column = 0; column < radial; ++column)
            sum[row * radial + column] = random() % 20;
        const double phi = bins.lines().angle_deg(static_cast<std::uint32_t>(row)) * std::numbers::pi / 180;
        const double s = x * std::cos(phi) + y * std::sin(phi);
        expected.push_back(
            static_cast<std::size_t>((s + bins.lines().radius_mm()) / bins.lines().width_mm()));
        if (row % 5 != 0) sum[row * radial + expected.back()] = 200;
    }
    const auto found = nema::columns_of_source(bins, sum, 0, radial);
    REQUIRE(found.size() == expected.size());
    for (std::size_t row = 0; row < found.size(); ++row) {
        CAPTURE(row, found[row], expected[row]);
        const auto apart =
            static_cast<std::ptrdiff_t>(found[row]) - static_cast<std::ptrdiff_t>(expected[row]);
        CHECK(std::abs(apart) <= (row % 5 != 0 ? 0 : 3));
    }
}

TEST_CASE("nema: filtered back-projection of a disk is the disk", "[nema]") {
    const auto projections = disk(6, -4, 5, 360, 300, 0.2);
    sinogram::Patch patch{6, -4, 0.4, 0.5, 31};
    const auto image = sinogram::back_project(projections, patch);
    REQUIRE(image.size() == 31 * 31);
    for (std::size_t j = 0; j < patch.size; ++j) {
        for (std::size_t i = 0; i < patch.size; ++i) {
            const double r = 0.5 * std::hypot(static_cast<double>(i) - 15, static_cast<double>(j) - 15);
            CAPTURE(i, j);
            if (r < 4.5) CHECK(image[j * 31 + i] == Approx(1).margin(0.03));
            if (r > 5.5) CHECK(image[j * 31 + i] == Approx(0).margin(0.06));
        }
    }
    // The axes of the patch: its first one is turned from x to y.
    const auto of_point =
        sinogram::back_project(disk(3, 4, 0.5, 180, 300, 0.2), {0, 0, std::atan2(4.0, 3.0), 1, 13});
    const auto largest = std::max_element(of_point.begin(), of_point.end()) - of_point.begin();
    CHECK(largest == 6 * 13 + 6 + 5);
}

TEST_CASE("nema: bins without lines are interpolated", "[nema]") {
    const std::vector<double> counts = {0, 4, 0, 0, 10, 0, /**/ 0, 0, 0, 0, 0, 0};
    const std::vector<double> lines = {0, 2, 0, 0, 2, 0, /**/ 0, 0, 0, 0, 0, 0};
    const auto p = sinogram::normalised(2, 6, 1, counts, lines);
    CHECK(p.values == std::vector<double>{0, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("nema: the strip around a line holds its trues, and a straight background is found under it",
          "[nema]") {
    constexpr double width = 0.4;
    std::vector<double> projection(201);
    double trues = 0;
    double background = 0;
    for (std::size_t i = 0; i < projection.size(); ++i) {
        const double x = (static_cast<double>(i) - 100) * width;
        const double peak = 1000 * std::exp(-x * x / 2);
        const double straight = std::abs(x) < 25 ? 20 + 0.3 * x : 0;
        projection[i] = peak + straight;
        trues += peak;
        background += straight;
    }
    const auto found = nema::strip_counts(projection, width);
    CHECK(found.total == Approx(trues + background));
    CHECK(found.trues() == Approx(trues).epsilon(1e-6));
    CHECK(found.background == Approx(background).epsilon(1e-6));
}

TEST_CASE("nema: errors of the strip are those of repeated measurements", "[nema]") {
    constexpr double width = 0.42;
    std::mt19937_64 random(5);
    std::vector<double> fractions;
    std::vector<double> errors;
    for (int repeat = 0; repeat < 400; ++repeat) {
        std::vector<double> projection(119);
        for (std::size_t i = 0; i < projection.size(); ++i) {
            const double x = (static_cast<double>(i) - 59) * width;
            const double mean = 300 * std::exp(-x * x / 2) + 30 * std::exp(-x * x / 200);
            projection[i] = std::poisson_distribution<int>(mean)(random);
        }
        const auto s = nema::strip_counts(projection, width);
        const auto fraction = nema::background_share(s, 40);
        fractions.push_back(fraction.value);
        errors.push_back(fraction.error);
    }
    const auto mean = [](const std::vector<double>& v) {
        return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
    };
    const double middle = mean(fractions);
    double squares = 0;
    for (const double f : fractions)
        squares += (f - middle) * (f - middle);
    CHECK(mean(errors) == Approx(std::sqrt(squares / 399)).epsilon(0.12));
}

TEST_CASE("nema: the mean activity has the decay within the acquisition", "[nema]") {
    daemon::Coverage coverage;
    coverage.tick_ps = 1e12;
    coverage.anchor = daemon::TimeAnchor{1000, {}};
    const auto mean_over = [&](const nema::RunActivity& activity, std::vector<gpu::TickRange> ranges) {
        coverage.intervals = daemon::Intervals(std::move(ranges));
        return activity.mean_MBq(coverage);
    };
    nema::RunActivity activity;
    CHECK(std::isnan(mean_over(activity, {{1000, 1010}})));
    activity.at_start_MBq = 8;
    CHECK(mean_over(activity, {{1005, 1010}}) == 8);
    activity.half_life_s = 100;
    const auto sum_over = [](double from, double to) {
        double sum = 0;
        for (int i = 0; i < 10'000; ++i)
            sum += 8 * std::exp2(-(from + (i + 0.5) * (to - from) / 10'000) / 100) / 10'000 * (to - from);
        return sum;
    };
    CHECK(mean_over(activity, {{1050, 1250}}) == Approx(sum_over(50, 250) / 200).epsilon(1e-6));
    CHECK(mean_over(activity, {{1050, 1060}, {1200, 1250}}) ==
          Approx((sum_over(50, 60) + sum_over(200, 250)) / 60).epsilon(1e-6));
    activity.nuclide = "Na-22";
    CHECK(nema::branching_of(activity) == 0.9060);
    activity.nuclide = "F-18";
    activity.branching_ratio = 0.9686;
    CHECK(nema::branching_of(activity) == 0.9686);
}

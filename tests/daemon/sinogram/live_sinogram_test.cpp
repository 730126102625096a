// The live sinogram and its image.
#include "daemon/sinogram/live_sinogram.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "config/shape/extent.hpp"
#include "daemon/sinogram/lines_per_bin.hpp"
#include "tests/daemon/sinogram/point.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;
using sinogram::LiveSinogram;

TEST_CASE("live sinogram: a point off centre appears at its place", "[sinogram]") {
    const config::Scanner scanner = small_scanner();
    LiveSinogram sinogram(scanner, opposite_modules(scanner));
    for (const auto& [x, y] : {std::pair{0.0, 0.0}, {14.0, 7.0}, {-9.0, 12.0}, {5.0, -16.0}}) {
        CAPTURE(x, y);
        sinogram.clear();
        sinogram.add(pairs_of_point(scanner, x, y));
        const auto image = sinogram.image();
        REQUIRE(image.values.size() == image.size * image.size);
        const auto peak = static_cast<std::size_t>(
            std::max_element(image.values.begin(), image.values.end()) - image.values.begin());
        const double centre = 0.5 * static_cast<double>(image.size - 1);
        const std::size_t peak_row = peak / image.size;
        const double found_x = (static_cast<double>(peak % image.size) - centre) * image.step_mm;
        const double found_y = (static_cast<double>(peak_row) - centre) * image.step_mm;
        CHECK(std::hypot(found_x - x, found_y - y) < scanner.dimensions.crystal_pitch_y_mm);
        // In the sinogram it is a sine.
        const auto& lines = sinogram.lines();
        for (std::uint32_t row = 0; row < lines.angles(); row += 7) {
            const auto begin = sinogram.counts().begin() + row * lines.radial();
            const auto end = begin + lines.radial();
            if (std::accumulate(begin, end, 0U) == 0) continue;
            const auto column = static_cast<std::uint32_t>(std::max_element(begin, end) - begin);
            const double phi = lines.angle_deg(row) * M_PI / 180;
            CHECK(std::abs(lines.radial_mm(column) - (x * std::cos(phi) + y * std::sin(phi))) <
                  scanner.dimensions.crystal_pitch_y_mm);
        }
    }
}

namespace {

/// Good pairs, evenly chosen, whose line passes a point at less than `reach_mm`, in z too.
std::vector<gpu::Coincidence> pairs_through(const config::Scanner& scanner, const gpu::PairRule& rule,
                                            const config::Vector3& point, double reach_mm) {
    const config::LineGeometry lines(scanner, config::DepthOfInteraction::of(scanner, {}));
    std::vector<gpu::Coincidence> pairs;
    constexpr std::uint64_t looked_at = 1'500'000;
    const std::uint64_t crystals = scanner.geometry.crystal_count();
    const auto step = static_cast<std::uint32_t>(crystals * crystals / 2 / looked_at) | 1U;
    for (std::uint32_t a = 0; a < crystals; ++a) {
        for (std::uint32_t b = a + 1 + a % step; b < crystals; b += step) {
            if (!rule.good(a, b)) continue;
            const auto [p, q] = lines.ends(a, b);
            const config::Vector3 along{q[0] - p[0], q[1] - p[1], q[2] - p[2]};
            const config::Vector3 to{point[0] - p[0], point[1] - p[1], point[2] - p[2]};
            const double squares = along[0] * along[0] + along[1] * along[1] + along[2] * along[2];
            const double part = (to[0] * along[0] + to[1] * along[1] + to[2] * along[2]) / squares;
            const double away =
                std::hypot(to[0] - part * along[0], to[1] - part * along[1], to[2] - part * along[2]);
            if (part > 0 && part < 1 && away < reach_mm)
                pairs.push_back({1000, 1, a, b, 511, 511, gpu::Kind::prompt});
        }
    }
    return pairs;
}

}  // namespace

TEST_CASE("live sinogram: a point is at its place in any scanner", "[sinogram]") {
    for (const char* const name : {"box", "insert", "phoswich", "unequal-blocks"}) {
        const config::Scanner scanner = example_scanner(name);
        const gpu::PairRule rule = gpu::PairRule::of(scanner.geometry, {});
        LiveSinogram sinogram(scanner, rule);
        const double pitch = config::extent_of(scanner).transaxial_pitch_mm;
        for (const auto& [x, y] : {std::pair{6.0, -3.0}}) {
            CAPTURE(name, x, y);
            sinogram.clear();
            const auto pairs = pairs_through(scanner, rule, {x, y, 3}, pitch / 2);
            REQUIRE(pairs.size() > 50);
            sinogram.add(pairs);
            CHECK(std::accumulate(sinogram.counts().begin(), sinogram.counts().end(), std::size_t{0}) ==
                  pairs.size());
            const auto image = sinogram.image();
            const auto peak = static_cast<std::size_t>(
                std::max_element(image.values.begin(), image.values.end()) - image.values.begin());
            const double centre = 0.5 * static_cast<double>(image.size - 1);
            const std::size_t peak_row = peak / image.size;
            const double found_x = (static_cast<double>(peak % image.size) - centre) * image.step_mm;
            const double found_y = (static_cast<double>(peak_row) - centre) * image.step_mm;
            CHECK(std::hypot(found_x - x, found_y - y) < 1.5 * pitch);
        }
    }
}

TEST_CASE("lines of a bin: each good pair of crystals once", "[sinogram]") {
    for (const char* const name : {"box", "phoswich", "unequal-blocks"}) {
        CAPTURE(name);
        const config::Scanner scanner = example_scanner(name);
        const gpu::PairRule rule = gpu::PairRule::of(scanner.geometry, {});
        const sinogram::LineBins lines(scanner, config::DepthOfInteraction::of(scanner, {}), 60, 80);
        const auto in_bin = sinogram::lines_per_bin(lines, scanner.geometry, rule);
        std::vector<double> expected(in_bin.size());
        for (std::uint32_t a = 0; a < scanner.geometry.crystal_count(); ++a) {
            for (std::uint32_t b = a + 1; b < scanner.geometry.crystal_count(); ++b) {
                const std::uint32_t bin = lines.of(a, b);
                if (rule.good(a, b) && bin != sinogram::LineBins::outside) ++expected[bin];
            }
        }
        CHECK(in_bin == expected);
    }
    // A sample of a larger scanner is close to all of its pairs.
    const config::Scanner large = example_scanner("insert");
    const gpu::PairRule rule = gpu::PairRule::of(large.geometry, {});
    const sinogram::LineBins lines(large, config::DepthOfInteraction::of(large, {}), 20, 20);
    const auto all = sinogram::lines_per_bin(lines, large.geometry, rule);
    const auto sample = sinogram::lines_per_bin(lines, large.geometry, rule, 1e6);
    double difference = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
        difference += std::abs(sample[i] - all[i]);
    CHECK(difference < 0.02 * std::accumulate(all.begin(), all.end(), 0.0));
}

TEST_CASE("live sinogram: delayeds are subtracted from the image, and are not in the sinogram",
          "[sinogram]") {
    const config::Scanner scanner = small_scanner();
    LiveSinogram sinogram(scanner, opposite_modules(scanner));
    const auto prompts = pairs_of_point(scanner, 8, 3);
    const auto delayeds = pairs_of_point(scanner, 8, 3, 10, gpu::Kind::delayed);
    sinogram.add(prompts);
    sinogram.add(delayeds);
    CHECK(sinogram.prompts() == prompts.size());
    CHECK(sinogram.delayeds() == delayeds.size());
    CHECK(std::accumulate(sinogram.counts().begin(), sinogram.counts().end(), std::size_t{0}) ==
          prompts.size());
    const auto image = sinogram.image();
    CHECK(std::all_of(image.values.begin(), image.values.end(), [](double v) { return std::abs(v) < 1e-9; }));
    sinogram.clear();
    CHECK(sinogram.prompts() == 0);
    CHECK(sinogram.delayeds() == 0);
    CHECK(std::accumulate(sinogram.counts().begin(), sinogram.counts().end(), 0U) == 0);
}

TEST_CASE("live sinogram: the ring of a pair does not matter", "[sinogram]") {
    const config::Scanner scanner = small_scanner();
    LiveSinogram one(scanner, opposite_modules(scanner));
    LiveSinogram other(scanner, opposite_modules(scanner));
    auto pairs = pairs_of_point(scanner, -4, 10, 1);
    one.add(pairs);
    for (std::uint32_t i = 0; i < pairs.size(); ++i) {
        const std::uint32_t ring = scanner.geometry.crystals_in_ring();
        pairs[i].crystal_a += i % scanner.geometry.rings() * ring;
        pairs[i].crystal_b += i * 3 % scanner.geometry.rings() * ring;
        if (i % 2 == 0) std::swap(pairs[i].crystal_a, pairs[i].crystal_b);
    }
    other.add(pairs);
    CHECK(one.counts() == other.counts());
}

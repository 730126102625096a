// The live sinogram and its image.
#include "daemon/sinogram/live_sinogram.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

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

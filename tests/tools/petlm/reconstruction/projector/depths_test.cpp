// The lines of a pair: at several depths, so that they pass where its photons may have flown.
#include <cmath>
#include <random>
#include <tuple>

#include "tests/support/catch.hpp"
#include "tests/tools/petlm/support.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"

namespace petacq::test {
namespace {

struct Moments {
    double mean = 0;
    double variance = 0;
    double third = 0;
};

/// Photon by photon: each flies an exponential way into the crystals, and counts if it ends inside them.
Moments moments_of_photons(double per_mm, double length_mm, double cosine) {
    std::mt19937_64 random(3);
    std::exponential_distribution<double> way(per_mm);
    std::vector<double> depths;
    while (depths.size() < 400'000) {
        const double depth = way(random) * cosine;
        if (depth < length_mm) depths.push_back(depth);
    }
    Moments out;
    for (const double depth : depths)
        out.mean += depth;
    const auto count = static_cast<double>(depths.size());
    out.mean /= count;
    for (const double depth : depths) {
        const double from_mean = depth - out.mean;
        out.variance += from_mean * from_mean / count;
        out.third += from_mean * from_mean * from_mean / count;
    }
    return out;
}

constexpr double far_apart_mm = 1e9;  // so that the photons of a crystal are parallel

/// A crystal whose length is along x, and its two depths.
Moments moments_of_depths(const config::DepthOfInteraction& depth, double cosine) {
    const image::Depths depths = image::depths_of({{0, 0, 0}, {1, 0, 0}}, depth, cosine, far_apart_mm, 1e-3);
    REQUIRE(depths.count == 2);
    CHECK(depths.share[0] + depths.share[1] == Approx(1));
    Moments out;
    for (std::size_t i = 0; i < 2; ++i)
        out.mean += static_cast<double>(depths.share[i] * depths.at[i].x[0]);
    for (std::size_t i = 0; i < 2; ++i) {
        const double share = depths.share[i];
        const double from_mean = depths.at[i].x[0] - out.mean;
        out.variance += share * from_mean * from_mean;
        out.third += share * from_mean * from_mean * from_mean;
    }
    return out;
}

}  // namespace

TEST_CASE("image: two depths have the mean, variance and skewness of those of photons",
          "[petlm][image][depth]") {
    for (const auto& [length, per_mm, cosine] :
         {std::tuple(20.0, 0.095, 0.95), std::tuple(20.0, 0.095, 0.5), std::tuple(13.0, 0.083, 0.8),
          std::tuple(5.0, 0.034, 0.6), std::tuple(200.0, 0.095, 0.7)}) {
        config::Dimensions dimensions;
        dimensions.crystal_length_mm = length;
        dimensions.crystal_attenuation_per_cm = 10 * per_mm;
        const Moments expected = moments_of_photons(per_mm, length, cosine);
        const Moments found = moments_of_depths(config::DepthOfInteraction(dimensions), cosine);
        const double deviation = std::sqrt(expected.variance);
        CAPTURE(length, per_mm, cosine);
        CHECK(found.mean == Approx(expected.mean).margin(0.01 * deviation));
        CHECK(found.variance == Approx(expected.variance).epsilon(0.02));
        CHECK(found.third == Approx(expected.third).margin(0.05 * deviation * expected.variance));
    }
}

TEST_CASE("image: a pair has as many lines as its voxels can tell apart", "[petlm][image][depth]") {
    const config::Scanner scanner = export_scanner();
    const config::LineGeometry geometry(scanner, config::DepthOfInteraction(scanner.dimensions));
    const std::uint32_t half = scanner.geometry.crystals_in_ring() / 2;
    const auto count_of = [&](const config::LineGeometry& lines, image::Pair pair, double voxel_mm) {
        int count = 0;
        float shares = 0;
        image::lines_of(lines, pair, voxel_mm).each([&](const image::Line& line, float share) {
            ++count;
            shares += share;
            for (const float x : {line.from.x[0], line.from.x[1], line.to.x[0], line.to.x[1]})
                CHECK(std::isfinite(x));
        });
        CHECK(shares == Approx(1));
        return count;
    };
    const image::Pair oblique{0, half / 2};
    CHECK(count_of(geometry, oblique, 0.2) == 4);
    CHECK(count_of(geometry, oblique, 50) == 1);
    // A depth that is asked for is one depth.
    const config::LineGeometry fixed(scanner, config::DepthOfInteraction::fixed(2));
    REQUIRE(count_of(fixed, oblique, 0.2) == 1);
    image::lines_of(fixed, oblique, 0.2).each([&](const image::Line& line, float) {
        const config::LineEnds expected = fixed.ends(oblique.a, oblique.b);
        for (std::size_t axis = 0; axis < 3; ++axis) {
            CHECK(static_cast<double>(line.from.x[axis]) == Approx(expected.a[axis]));
            CHECK(static_cast<double>(line.to.x[axis]) == Approx(expected.b[axis]));
        }
    });
}

}  // namespace petacq::test

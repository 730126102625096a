// Places on lines and regions, against a walk in small steps.
#include <cmath>
#include <random>

#include "tests/support/catch.hpp"
#include "tools/petlm/lifetime/places.hpp"

using namespace petacq;
using lifetime::Places;

namespace {

constexpr double tick_ps = 10;

struct Step {
    double left = 0;
    double right = 0;
    double left_mm = 0;
    double right_mm = 0;
    double all = 0;
    double nearest_surface_mm = 1e9;  ///< of a sphere, where the line is nearest to its middle
};

double inside(const std::array<double, 3>& at, double x, double radius) {
    return std::hypot(at[0] - x, at[1], at[2]) < radius ? 1 : 0;
}

/// `elsewhere`: activity in a place that is in neither sphere.
Step walk(const image::Line& line, double reach_mm, double elsewhere, const image::TofBins& tof,
          std::int64_t ticks) {
    Step sum;
    std::array<double, 3> along{};
    double length = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        along[axis] = line.to.x[axis] - line.from.x[axis];
        length += along[axis] * along[axis];
    }
    length = std::sqrt(length);
    double nearest_left = 1e9;
    double nearest_right = 1e9;
    constexpr double step = 0.02;
    for (double mm = 0; mm < length; mm += step) {
        std::array<double, 3> at{};
        bool in_box = true;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            at[axis] = line.from.x[axis] + along[axis] * mm / length;
            in_box = in_box && std::abs(at[axis]) < reach_mm;
        }
        if (!in_box) continue;
        const double chance = tof.used() ? tof.chance(mm - length / 2 + tof.bin(ticks) * tof.bin_mm()) : 1;
        nearest_left = std::min(nearest_left, std::hypot(at[0] + 8, at[1], at[2]));
        nearest_right = std::min(nearest_right, std::hypot(at[0] - 8, at[1], at[2]));
        const double left = inside(at, -8, 5) * chance;
        const double right = inside(at, 8, 5) * chance;
        sum.left += left;
        sum.right += right;
        sum.left_mm += left * mm;
        sum.right_mm += right * mm;
        sum.all += left + right + elsewhere * chance * (left + right > 0 ? 0 : 1);
    }
    sum.nearest_surface_mm = std::min(std::abs(nearest_left - 5), std::abs(nearest_right - 5));
    return sum;
}

void check_places(bool with_image, double fwhm_ps) {
    const image::Grid grid{{80, 80, 80}, 0.5};
    const auto regions = frames::regions_of({"left=sphere:-8,0,0,5", "right=sphere:8,0,0,5"}, grid);
    const double elsewhere = with_image ? 0.05 : 0;
    std::vector<float> shown(grid.voxels(), static_cast<float>(elsewhere));
    for (const auto& region : regions)
        for (const auto& [voxel, share] : region.shares())
            shown[voxel] += share * static_cast<float>(1 - elsewhere);
    const image::TofBins tof = fwhm_ps > 0 ? image::TofBins::of(fwhm_ps, tick_ps, 1000) : image::TofBins{};
    Places places(grid, with_image ? &shown : nullptr, regions, tof, 0.5);
    std::mt19937_64 random(with_image ? 1 : 2);
    std::uniform_real_distribution<> even(-1, 1);
    unsigned found_any = 0;
    for (int i = 0; i < 150; ++i) {
        const double phi = 3.1 * even(random);
        image::Line line{};
        const double x = 14 * even(random);
        const double y = 6 * even(random);
        for (const int sign : {-1, 1}) {
            image::Point& end = sign < 0 ? line.from : line.to;
            end = {{static_cast<float>(x + sign * 60 * std::cos(phi)),
                    static_cast<float>(y + sign * 60 * std::sin(phi)), static_cast<float>(8 * even(random))}};
        }
        const auto ticks = static_cast<std::int64_t>(6 * even(random));
        const Step truth = walk(line, 20, elsewhere, tof, ticks);
        const double best = std::max(truth.left, truth.right);
        const auto found = places.find(line, ticks);
        // Near one half, and where a line touches a sphere, voxels decide otherwise than spheres do.
        if (truth.nearest_surface_mm < 0.6) continue;
        if (truth.all < (tof.used() ? 30 : 50) || std::abs(best / truth.all - 0.5) < 0.2) continue;
        INFO("line " << i << ", share " << best / truth.all);
        REQUIRE(found.has_value() == (best > 0.5 * truth.all));
        if (!found) continue;
        ++found_any;
        CHECK(found->region == (truth.right > truth.left ? 1 : 0));
        CHECK(std::abs(found->share - best / truth.all) < 0.15);
        const double mm =
            truth.right > truth.left ? truth.right_mm / truth.right : truth.left_mm / truth.left;
        CHECK(std::abs(found->from_start_mm - mm) < 0.6);
    }
    CHECK(found_any > 30);
}

}  // namespace

TEST_CASE("an annihilation is placed by activity, region and time of flight", "[lifetime]") {
    for (const bool with_image : {false, true}) {
        for (const double fwhm_ps : {0.0, 60.0}) {
            INFO("image " << with_image << ", resolution " << fwhm_ps);
            check_places(with_image, fwhm_ps);
        }
    }
}

TEST_CASE("without regions all activity is one, and a line beside it has no place", "[lifetime]") {
    const image::Grid grid{{10, 10, 10}, 1};
    Places places(grid, nullptr, {}, {}, 0.5);
    const auto through = places.find({{{-20, 0.3F, 0.2F}}, {{20, 0.3F, 0.2F}}}, 0);
    REQUIRE(through);
    CHECK(through->share == Approx(1));
    CHECK(through->from_start_mm == Approx(20).margin(0.01));
    CHECK_FALSE(places.find({{{-20, 9, 0}}, {{20, 9, 0}}}, 0));
}

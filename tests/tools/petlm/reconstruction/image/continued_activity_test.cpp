#include "tools/petlm/reconstruction/em/continued_activity.hpp"

#include <array>

#include "tests/support/catch.hpp"

using namespace petacq;

namespace {

constexpr std::array<double, 7> sensitivity = {0.01, 0.06, 0.5, 1, 0.5, 0.06, 0.01};
constexpr std::array<double, 7> activity = {7, 3, 90, 100, 80, 2, 5};

/// By plane, 2 mm each, of a grid of one voxel across.
std::vector<double> continued(const char* object, double prompts, double beyond_mm = 20) {
    image::SeenActivity seen{{{1, 1, 7}, 2}, {}, {}, prompts};
    seen.image.assign(activity.begin(), activity.end());
    seen.sensitive.assign(sensitivity.begin(), sensitivity.end());
    const corrections::Activity out =
        image::continued_activity(seen, corrections::AttenuatingObject::of({object}), beyond_mm);
    REQUIRE(out.grid.voxel_mm == 2);
    REQUIRE(out.of_voxel.size() == out.grid.voxels());
    return {out.of_voxel.begin(), out.of_voxel.end()};
}

}  // namespace

TEST_CASE("scatter: the activity falls off at the ends as far as the prompts tell", "[petlm][image]") {
    // The outermost planes but one would have 190 of 10,000 prompts.
    CHECK(continued("0,0,0,5,14", 10'000) == std::vector<double>{3, 3, 90, 100, 80, 2, 2});
    // With 19 they tell nothing.
    CHECK(continued("0,0,0,5,14", 1'000) == std::vector<double>{90, 90, 90, 100, 80, 80, 80});
    // However few there are, planes that see a tenth of the best are as in the image.
    CHECK(continued("0,0,0,5,14", 0) == continued("0,0,0,5,14", 1'000));
    // The outermost ones see too little for any number.
    CHECK(continued("0,0,0,5,14", 1e9) == continued("0,0,0,5,14", 10'000));
}

TEST_CASE("scatter: beyond what an image shows the activity goes on as far as the object", "[petlm][image]") {
    CHECK(continued("0,0,0,5,18", 10'000) == std::vector<double>{3, 3, 3, 90, 100, 80, 2, 2, 2});
    // Towards one side alone.
    CHECK(continued("0,0,2,5,14", 10'000) == std::vector<double>{0, 0, 3, 90, 100, 80, 2, 2, 2});
    CHECK(continued("0,0,0,5,80", 10'000, 2) == continued("0,0,0,5,18", 10'000));
    // Where there is no object there is no activity but what the image shows.
    CHECK(continued("0,0,0,5,8", 10'000) == std::vector<double>{0, 3, 90, 100, 80, 2, 0});
}

// Lines through voxels: lengths against chords and against fine sampling.
#include <map>

#include "tests/tools/petlm/reconstruction/image/support.hpp"
#include "tools/petlm/reconstruction/projector/trace.hpp"

using namespace petacq;
using namespace petacq::test;
using image::Grid;
using image::Point;

namespace {

struct Crossed {
    std::map<std::uint32_t, double> length;  ///< by voxel
    std::uint32_t visits = 0;
    double sum = 0;
};

Crossed crossed(const Grid& grid, const Point& a, const Point& b) {
    Crossed out;
    const image::Ray ray(image::Box::of(grid), a, b);
    ray.walk([&](std::uint32_t voxel, float mm) {
        REQUIRE(voxel < grid.voxels());
        REQUIRE(mm >= 0);
        out.length[voxel] += mm;
        out.sum += mm;
        ++out.visits;
    });
    CHECK(out.sum == Approx(ray.length()).margin(1e-4));
    return out;
}

/// Length of the line inside the box, computed from its six planes.
double chord(const Grid& grid, const Point& a, const Point& b) {
    std::vector<double> cuts = {0, 1};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        for (const double plane : {grid.low(axis), -grid.low(axis)})
            cuts.push_back((plane - a.x[axis]) / (static_cast<double>(b.x[axis]) - a.x[axis]));
    }
    std::sort(cuts.begin(), cuts.end());
    double inside = 0;
    for (std::size_t i = 1; i < cuts.size(); ++i) {
        const double middle = (cuts[i] + cuts[i - 1]) / 2;
        if (!(cuts[i - 1] >= 0 && cuts[i] <= 1)) continue;
        bool in = true;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            const double at = a.x[axis] + middle * (static_cast<double>(b.x[axis]) - a.x[axis]);
            in = in && std::abs(at) < -grid.low(axis);
        }
        if (in) inside += cuts[i] - cuts[i - 1];
    }
    return inside * std::hypot(static_cast<double>(b.x[0]) - a.x[0], static_cast<double>(b.x[1]) - a.x[1],
                               static_cast<double>(b.x[2]) - a.x[2]);
}

Point point(double x, double y, double z) {
    return {{static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)}};
}

}  // namespace

TEST_CASE("image: the lengths of a line add up to its chord and agree with fine sampling voxel by voxel",
          "[petlm][image]") {
    const Grid grid{{13, 10, 7}, 1.3};
    std::mt19937_64 random(11);
    std::uniform_real_distribution<double> place(-14, 14);
    int hits = 0;
    for (int i = 0; i < 2000; ++i) {
        const Point a = point(place(random), place(random), place(random));
        const Point b = point(place(random), place(random), place(random));
        const Crossed found = crossed(grid, a, b);
        CHECK(found.sum == Approx(chord(grid, a, b)).margin(1e-4));
        if (found.sum == 0 || ++hits > 60) continue;
        constexpr int samples = 200'000;
        std::map<std::uint32_t, double> sampled;
        const double step =
            std::hypot(static_cast<double>(b.x[0]) - a.x[0], static_cast<double>(b.x[1]) - a.x[1],
                       static_cast<double>(b.x[2]) - a.x[2]) /
            samples;
        for (int k = 0; k < samples; ++k) {
            std::array<double, 3> at{};
            bool in = true;
            for (std::size_t axis = 0; axis < 3; ++axis) {
                const double mm =
                    a.x[axis] + (k + 0.5) / samples * (static_cast<double>(b.x[axis]) - a.x[axis]);
                at[axis] = std::floor((mm - grid.low(axis)) / grid.voxel_mm);
                in = in && at[axis] >= 0 && at[axis] < grid.n[axis];
            }
            if (in)
                sampled[static_cast<std::uint32_t>((at[2] * grid.n[1] + at[1]) * grid.n[0] + at[0])] += step;
        }
        for (const auto& [voxel, mm] : sampled) {
            const auto exact = found.length.find(voxel);
            CHECK((exact == found.length.end() ? 0 : exact->second) == Approx(mm).margin(3 * step));
        }
        for (const auto& [voxel, mm] : found.length) {
            if (sampled.count(voxel) == 0) CHECK(mm < 3 * step);
        }
    }
    CHECK(hits > 60);
}

TEST_CASE("image: lines along an axis, along voxel faces, through corners and beside the box",
          "[petlm][image]") {
    const Grid grid{{8, 8, 8}, 1};
    CHECK(crossed(grid, point(-9, 0.5, 0.5), point(9, 0.5, 0.5)).length.size() == 8);
    CHECK(crossed(grid, point(0.25, 9, -0.5), point(0.25, -9, -0.5)).sum == Approx(8));
    // On a face between two voxels the length is given once.
    CHECK(crossed(grid, point(-9, 1, 2), point(9, 1, 2)).sum == Approx(8));
    CHECK(crossed(grid, point(9, -4, 0.5), point(-9, -4, 0.5)).sum == Approx(8));
    // From corner to corner, both ways.
    const double diagonal = 8 * std::sqrt(3.0);
    CHECK(crossed(grid, point(-8, -8, -8), point(8, 8, 8)).sum == Approx(diagonal));
    CHECK(crossed(grid, point(8, -8, 8), point(-8, 8, -8)).sum == Approx(diagonal));
    // Beside it, touching an edge, and ending before it.
    CHECK(crossed(grid, point(-9, 4.5, 0), point(9, 4.5, 0)).visits == 0);
    CHECK(crossed(grid, point(0, 8, 0), point(8, 0, 0)).sum == Approx(0).margin(1e-6));
    CHECK(crossed(grid, point(-9, 0, 0), point(-5, 0, 0)).visits == 0);
    // Ends inside.
    CHECK(crossed(grid, point(-2.5, 0.5, 0.5), point(1.25, 0.5, 0.5)).sum == Approx(3.75));
    CHECK(crossed(grid, point(1, 1, 1), point(1, 1, 1)).sum == 0);
}

TEST_CASE("image: a trace has the voxels of a walk with the same weights, in either order of indices",
          "[petlm][image]") {
    const Grid grid{{21, 34, 9}, 1.1};
    image::Box box = image::Box::of(grid);
    image::Box along_z = box;
    along_z.z_first = true;
    const image::TofBins bins = image::TofBins::of(60, 10, 400);
    const image::TofTable table(bins);
    std::mt19937_64 random(12);
    std::uniform_real_distribution<double> place(-25, 25);
    image::Trace trace(along_z);
    int hits = 0;
    for (int i = 0; i < 2000; ++i) {
        const bool flat = i % 5 == 0;
        const auto end = [&] { return point(place(random), place(random), flat ? 0.3 : place(random) / 3); };
        const image::LinesOfPair lines{{{end(), end()}, {0.7F, 0.3F}, 1 + i % 2},
                                       {{end(), end()}, {0.6F, 0.4F}, 1 + i / 2 % 2}};
        const auto bin = static_cast<std::int16_t>(i % 3 - 1);
        for (const image::TofWeights& tof : {image::TofWeights{}, table.weights(table.nodes.data())}) {
            std::map<std::size_t, float> walked;
            image::walk_row(box, lines, tof, bin, [&](std::uint32_t voxel, float weight) {
                const std::size_t x = voxel % 21;
                const std::size_t y = voxel / 21 % 34;
                if (weight > 0) walked[(y * 21 + x) * 9 + voxel / 21 / 34] += weight;
            });
            std::map<std::size_t, float> traced;
            trace.follow(along_z, lines, tof, bin);
            trace.each([&](std::size_t voxel, float weight) {
                REQUIRE(voxel < grid.voxels());
                if (weight > 0) traced[voxel] += weight;
            });
            REQUIRE(traced.size() == walked.size());
            for (const auto& [voxel, weight] : walked)
                REQUIRE(traced[voxel] == Approx(weight).epsilon(1e-6));
            hits += walked.empty() ? 0 : 1;
        }
    }
    CHECK(hits > 500);
}

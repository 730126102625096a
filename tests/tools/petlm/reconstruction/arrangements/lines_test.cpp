// Lines of scanners in the long form: projections, sums over them, their order, and the GPU against the CPU.
#include <cmath>
#include <numeric>
#include <random>

#include "tests/support/catch.hpp"
#include "tests/tools/petlm/reconstruction/arrangements/photons.hpp"
#include "tools/petlm/reconstruction/corrections/scatter_nodes.hpp"
#include "tools/petlm/reconstruction/em/line_sums.hpp"
#ifdef PETACQ_HAVE_CUDA
#include "gpu/cuda/cuda_pipeline.hpp"
#include "tools/petlm/reconstruction/projector/projector_cuda.hpp"
#endif

namespace petacq::test {
namespace {

const char* const examples[] = {"phoswich",       "box",       "two-heads", "hexagon",   "partial-ring",
                                "unequal-blocks", "two-rings", "insert",    "monolithic"};

/// Rows of random pairs, in the order in which EM takes them.
struct RandomRows {
    config::Scanner scanner;
    image::Grid grid{{24, 20, 18}, 1.7};
    corrections::LineFactors factors;
    net::WorkerPool pool{2};
    image::Lines lines;

    explicit RandomRows(const std::string& name)
        : scanner(example_scanner(name)),
          factors(scanner, config::DepthOfInteraction::of(scanner, std::nullopt)) {
        std::mt19937_64 random(9);
        std::vector<image::Pair> pairs;
        while (pairs.size() < 3000) {
            const auto crystal = [&] {
                return static_cast<std::uint32_t>(random() % scanner.geometry.crystal_count());
            };
            const image::Pair pair{crystal(), crystal()};
            if (pair.a < pair.b) pairs.push_back(pair);
        }
        const std::vector<std::uint32_t> counts(pairs.size(), 2);
        lines =
            image::make_lines(factors, grid, {pairs, counts}, {[](image::Pair) { return 1e-12; }, {}, {}}, 3);
    }
    struct Made {
        std::vector<float> back;
        image::Compared compared;
    };
    [[nodiscard]] Made compared(image::Projector& projector, const std::vector<float>& image) const {
        Made out{std::vector<float>(image.size()), {}};
        projector.use(lines.rows());
        out.compared = projector.compare(image, 0, lines.pairs.size(), out.back);
        return out;
    }
};

std::vector<float> random_image(std::size_t voxels) {
    std::mt19937_64 random(2);
    std::vector<float> out(voxels);
    for (float& value : out)
        value = static_cast<float>(1 + random() % 100);
    return out;
}

double largest_of(const std::vector<float>& values) {
    return static_cast<double>(*std::max_element(values.begin(), values.end()));
}

}  // namespace

TEST_CASE("arrangements: a projector follows the lines of each kind of crystals",
          "[petlm][image][arrangement]") {
    for (const char* const name : examples) {
        CAPTURE(name);
        RandomRows rows(name);
        REQUIRE(rows.lines.pairs.size() == 3000);
        const std::vector<float> image = random_image(rows.grid.voxels());
        const auto found =
            rows.compared(*image::make_host_projector(rows.grid, rows.factors.geometry(), rows.pool), image);
        // The slow way, by the description: each crystal has the depth of its own layer.
        const image::Box box = image::Box::of(rows.grid);
        std::vector<double> back(image.size());
        for (std::size_t i = 0; i < rows.lines.pairs.size(); ++i) {
            const image::Pair pair = rows.lines.pairs[i];
            const auto at = [&](std::uint32_t crystal) { return rows.scanner.arrangement->place(crystal); };
            const double apart = std::sqrt(config::square_of_distance(at(pair.a), at(pair.b)));
            const config::Cosines cosines = config::cosines_of(at(pair.a), at(pair.b), apart);
            const auto depths = [&](std::uint32_t crystal, double cosine) {
                const config::DepthOfInteraction depth(rows.scanner.arrangement->layer_of(crystal), 100);
                return image::depths_of(at(crystal), depth, cosine, apart, rows.grid.voxel_mm);
            };
            const image::LinesOfPair lines{depths(pair.a, cosines.a), depths(pair.b, cosines.b)};
            double along = 0;
            image::walk_row(box, lines, {}, 0, [&](std::uint32_t voxel, float weight) {
                along += double{weight} * double{image[voxel]};
            });
            const double expected = along + double{rows.lines.additive[i]};
            if (!(expected > 0)) continue;
            image::walk_row(box, lines, {}, 0, [&](std::uint32_t voxel, float weight) {
                back[voxel] += double{weight} * double{rows.lines.prompts[i]} / expected;
            });
        }
        const double largest = *std::max_element(back.begin(), back.end());
        REQUIRE(largest > 0);
        for (std::size_t i = 0; i < back.size(); ++i)
            REQUIRE(double{found.back[i]} == Approx(back[i]).margin(1e-5 * largest));
    }
}

TEST_CASE("arrangements: lines of the same columns of crystals follow each other",
          "[petlm][image][arrangement]") {
    for (const char* const name : examples) {
        CAPTURE(name);
        const config::Scanner scanner = example_scanner(name);
        const config::LineGeometry geometry(scanner, config::DepthOfInteraction::of(scanner, 1));
        const corrections::AxialColumns columns(scanner, geometry.places);
        CHECK(columns.count() < geometry.places.size());
        for (std::uint32_t crystal = 0; crystal < geometry.places.size(); crystal += 7) {
            const std::uint32_t first = columns.of(crystal);
            REQUIRE(first < columns.count());
        }
        const RandomRows rows(name);
        std::size_t begin = 0;
        for (std::size_t subset = 0; subset + 1 < rows.lines.subset_start.size(); ++subset) {
            std::pair<std::uint32_t, std::uint32_t> before{};
            for (; begin < rows.lines.subset_start[subset + 1]; ++begin) {
                const image::Pair pair = rows.lines.pairs[begin];
                const std::pair<std::uint32_t, std::uint32_t> next =
                    std::minmax({columns.of(pair.a), columns.of(pair.b)});
                REQUIRE(before <= next);
                before = next;
            }
        }
    }
}

TEST_CASE("arrangements: a sample of the lines has the sum of all", "[petlm][image][arrangement]") {
    const config::Scanner scanner = example_scanner("two-heads");
    const corrections::LineFactors factors(scanner, config::DepthOfInteraction::of(scanner, std::nullopt));
    const image::Grid grid{{6, 6, 6}, 4};
    const gpu::PairRule rule = gpu::PairRule::of(scanner.geometry, {});
    net::WorkerPool two(2);
    net::WorkerPool three(3);
    // Crystals that differ, and dead ones.
    const auto chance = [](image::Pair pair) { return pair.b % 11 == 0 ? 0.0 : 0.7 + 0.1 * (pair.a % 5); };
    const auto all = image::sum_of_lines(factors, grid, rule, chance, two);
    const auto sampled = image::sampled_sum_of_lines(factors, grid, rule, chance, two);
    CHECK(image::sampled_sum_of_lines(factors, grid, rule, chance, three) == sampled);
    const double largest = largest_of(all);
    REQUIRE(largest > 0);
    double squares = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const double difference = (double{sampled[i]} - double{all[i]}) / largest;
        squares += difference * difference;
        CHECK(std::abs(difference) < 0.1);
    }
    CHECK(std::sqrt(squares / static_cast<double>(all.size())) < 0.02);
    CHECK(std::accumulate(sampled.begin(), sampled.end(), 0.0) ==
          Approx(std::accumulate(all.begin(), all.end(), 0.0)).epsilon(0.01));
}

TEST_CASE("arrangements: nodes of scatter are where the crystals are", "[petlm][corrections][arrangement]") {
    for (const char* const name : examples) {
        CAPTURE(name);
        const config::Scanner scanner = example_scanner(name);
        const corrections::ScatterNodes nodes(scanner);
        CHECK(nodes.count() <= 4096);
        // A linear function of the place on a module is interpolated exactly: its values at the nodes follow
        // from crystals that lie on them.
        std::vector<double> weight(nodes.count());
        for (std::uint32_t crystal = 0; crystal < nodes.crystals(); ++crystal) {
            double sum = 0;
            for (const auto& corner : nodes.corners(crystal)) {
                REQUIRE(corner.node < nodes.count());
                REQUIRE(corner.share >= 0);
                sum += double{corner.share};
                weight[corner.node] += double{corner.share};
            }
            REQUIRE(sum == Approx(1).margin(1e-5));
            REQUIRE(nodes.class_of(crystal) < nodes.classes());
        }
        CHECK(*std::min_element(weight.begin(), weight.end()) > 0);
    }
}

#ifdef PETACQ_HAVE_CUDA
TEST_CASE("arrangements: a GPU follows the lines of the CPU", "[petlm][image][arrangement][cuda]") {
    if (const auto reason = gpu::cuda_unusable_reason()) {
        WARN("skipped: " << *reason);
        return;
    }
    for (const char* const name : examples) {
        CAPTURE(name);
        RandomRows rows(name);
        const std::vector<float> image = random_image(rows.grid.voxels());
        const auto expected =
            rows.compared(*image::make_host_projector(rows.grid, rows.factors.geometry(), rows.pool), image);
        const auto found =
            rows.compared(*image::make_cuda_projector(rows.grid, rows.factors.geometry()), image);
        CHECK(found.compared.log_likelihood == Approx(expected.compared.log_likelihood).epsilon(1e-6));
        CHECK(found.compared.outside == expected.compared.outside);
        const double largest = largest_of(expected.back);
        for (std::size_t i = 0; i < image.size(); ++i)
            REQUIRE(double{found.back[i]} == Approx(double{expected.back[i]}).margin(1e-5 * largest));
    }
}
#endif

}  // namespace petacq::test

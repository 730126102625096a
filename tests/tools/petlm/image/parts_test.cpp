// The input of EM: counts of pairs, randoms, weights, sensitivity; and smoothing.
#include <map>
#include <numbers>
#include <numeric>

#include "tests/tools/petlm/image/support.hpp"
#include "tools/petlm/image/smooth.hpp"
#include "tools/petlm/projector/ray.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

gpu::RecordVector<gpu::Coincidence> random_records(std::size_t count, std::uint32_t crystals,
                                                   std::uint64_t seed) {
    std::mt19937_64 random(seed);
    gpu::RecordVector<gpu::Coincidence> out(count, gpu::Coincidence{});
    for (auto& c : out) {
        // Some pairs often.
        c.crystal_a = static_cast<std::uint32_t>(random() % (random() % 2 == 0 ? crystals : 20));
        c.crystal_b = static_cast<std::uint32_t>(random() % (random() % 2 == 0 ? crystals : 20));
        c.kind = random() % 8 == 0 ? gpu::Kind::delayed : gpu::Kind::prompt;
    }
    return out;
}

using Counts = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>;

Counts counts_of(const image::PairCounts& counts) {
    Counts out;
    for (std::size_t i = 0; i < counts.pairs().size(); ++i) {
        const auto pair = counts.pairs()[i];
        if (i > 0) {
            const auto before = counts.pairs()[i - 1];
            REQUIRE(std::pair(before.a, before.b) < std::pair(pair.a, pair.b));
        }
        out[{pair.a, pair.b}] = counts.counts()[i];
    }
    return out;
}

}  // namespace

TEST_CASE(
    "image: prompts are counted by pair, and if the pairs do not fit, a fair share of them keeps complete "
    "counts",
    "[petlm][image]") {
    constexpr std::uint32_t crystals = 900;
    const auto records = random_records(400'000, crystals, 3);
    Counts expected;
    for (const auto& c : records) {
        if (c.kind == gpu::Kind::prompt && c.crystal_a != c.crystal_b)
            ++expected[{std::min(c.crystal_a, c.crystal_b), std::max(c.crystal_a, c.crystal_b)}];
    }
    for (const std::size_t capacity : {1'000'000UL, 40'000UL, 5'000UL, 0UL}) {
        CAPTURE(capacity);
        std::optional<Counts> first;
        for (const std::uint32_t threads : {1U, 3U}) {
            gpu::WorkerPool pool(threads);
            image::PairCounts counts(crystals, capacity, pool);
            for (std::size_t done = 0; done < records.size(); done += 7'777)
                counts.add(
                    std::span(records).subspan(done, std::min<std::size_t>(7'777, records.size() - done)));
            counts.finish();
            const Counts found = counts_of(counts);
            if (capacity == 1'000'000) {
                CHECK(counts.share() == 1);
                CHECK(found == expected);
            } else {
                CHECK(counts.share() < 1);
                CHECK(found.size() <= std::max<std::size_t>(capacity, 1024));
                // The pairs kept have complete counts, and their number agrees with the share.
                for (const auto& [pair, count] : found)
                    REQUIRE(expected.at(pair) == count);
                const double wanted = counts.share() * static_cast<double>(expected.size());
                CHECK(static_cast<double>(found.size()) == Approx(wanted).margin(5 * std::sqrt(wanted)));
            }
            std::uint64_t sum = 0;
            for (const auto& [pair, count] : found)
                sum += count;
            CHECK(counts.prompts() == sum);
            if (first) CHECK(found == *first);
            first = found;
        }
    }
}

TEST_CASE("image: randoms of a pair of crystals are its share of the delayeds of their modules",
          "[petlm][image]") {
    const auto scanner = export_scanner();
    const auto& g = scanner.geometry;
    const auto module_of = [&](std::uint32_t crystal) {
        const std::uint32_t around = crystal % g.crystals_in_ring() / g.crystals_per_module_y();
        return around + crystal / g.crystals_in_ring() / (g.blocks.z * g.crystals.z) * g.modules_in_ring();
    };
    for (const auto& [difference, rings] :
         {std::pair(0U, UINT32_MAX), std::pair(2U, UINT32_MAX), std::pair(0U, 5U), std::pair(3U, 14U)}) {
        gpu::CoincidenceRules rules;
        rules.min_module_difference = difference;
        rules.max_ring_difference = rings;
        const auto rule = gpu::PairRule::of(g, rules);
        image::RandomsByModules randoms(g, rule);
        std::map<std::pair<std::uint32_t, std::uint32_t>, double> delayeds;
        const auto records = random_records(30'000, g.crystal_count(), difference + 1);
        for (const auto& c : records) {
            if (!rule.good(c.crystal_a, c.crystal_b)) continue;
            randoms.add(c.crystal_a, c.crystal_b);
            ++delayeds[std::minmax(module_of(c.crystal_a), module_of(c.crystal_b))];
        }
        // Summed over all good pairs they equal the delayeds of each pair of modules.
        std::map<std::pair<std::uint32_t, std::uint32_t>, double> sums;
        for (std::uint32_t a = 0; a < g.crystal_count(); ++a) {
            for (std::uint32_t b = a + 1; b < g.crystal_count(); ++b) {
                if (rule.good(a, b))
                    sums[std::minmax(module_of(a), module_of(b))] += randoms.expected({a, b});
            }
        }
        double all = 0;
        for (const auto& [modules, count] : delayeds) {
            CHECK(sums[modules] == Approx(count));
            all += count;
        }
        CHECK(static_cast<double>(randoms.total()) == all);
    }
}

TEST_CASE("image: sensitivity is the sum of weight times length over all good pairs", "[petlm][image]") {
    // Brute force over all pairs of crystals, with the weights as defined.
    config::Scanner scanner = export_scanner();
    gpu::CoincidenceRules rules;
    rules.min_module_difference = 2;
    rules.max_ring_difference = 17;
    const auto rule = gpu::PairRule::of(scanner.geometry, rules);
    const image::Grid grid{{16, 16, 13}, 4};
    const auto points = image::crystal_points(scanner, 0);
    std::vector<config::CrystalPlace> places;
    for (std::uint32_t c = 0; c < points.size(); ++c)
        places.push_back(config::crystal_place(scanner, c));
    std::vector<double> sums(grid.voxels());
    const double face = scanner.dimensions.crystal_pitch_y_mm * scanner.dimensions.crystal_pitch_z_mm;
    for (std::uint32_t a = 0; a < points.size(); ++a) {
        for (std::uint32_t b = a + 1; b < points.size(); ++b) {
            if (!rule.good(a, b)) continue;
            config::Vector3 line{};
            for (std::size_t i = 0; i < 3; ++i)
                line[i] = places[a].front_centre_mm[i] - places[b].front_centre_mm[i];
            const double distance = std::hypot(line[0], line[1], line[2]);
            double cosines = -1;
            for (const auto& place : {places[a], places[b]}) {
                cosines *= (line[0] * place.outward[0] + line[1] * place.outward[1]) / distance;
            }
            const double lines = face * face * cosines / distance / distance;  // area times solid angle
            const image::Ray ray(image::Box::of(grid), points[a], points[b]);
            ray.walk([&](std::uint32_t voxel, float mm) {
                sums[voxel] += 2 * lines / (4 * std::numbers::pi) * mm / std::pow(grid.voxel_mm, 3);
            });
        }
    }
    gpu::WorkerPool pool(2);
    const auto found = image::sensitivity(scanner, rule, grid, pool);
    gpu::WorkerPool three(3);
    CHECK(image::sensitivity(scanner, rule, grid, three) == found);
    const double largest = *std::max_element(sums.begin(), sums.end());
    CHECK(largest > 0.05);
    double total = 0;
    double expected = 0;
    std::size_t compared = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const double x = grid.centre(0, i % 16);
        const double y = grid.centre(1, i / 16 % 16);
        if (std::hypot(x, y) > 24) continue;
        ++compared;
        total += found[i];
        expected += sums[i];
        // One line for each pair, in voxels of 4 mm: rough where few lines pass.
        CHECK(found[i] == Approx(sums[i]).margin(0.08 * largest));
    }
    CHECK(compared > 1000);
    CHECK(total == Approx(expected).epsilon(0.01));
}

TEST_CASE("image: the weights of lines make the additive term", "[petlm][image]") {
    const auto records = point_source(export_scanner(), {3, 2, 1}, 4000);
    EmInput input(records, 3);
    const auto& lines = input.lines;
    REQUIRE(lines.subset_start.size() == 4);
    CHECK(lines.subset_start.back() == lines.pairs.size());
    CHECK(std::accumulate(lines.prompts.begin(), lines.prompts.end(), 0.0) ==
          static_cast<double>(of_kind(records, gpu::Kind::prompt).size()));
    std::size_t smallest = lines.pairs.size();
    std::size_t most = 0;
    for (std::size_t s = 0; s < 3; ++s) {
        smallest = std::min(smallest, lines.subset_start[s + 1] - lines.subset_start[s]);
        most = std::max(most, lines.subset_start[s + 1] - lines.subset_start[s]);
    }
    CHECK(most - smallest <= 1);
    CHECK(*std::min_element(lines.additive.begin(), lines.additive.end()) >= 0);
    CHECK(*std::max_element(lines.additive.begin(), lines.additive.end()) > 0);
}

TEST_CASE("image: smoothing keeps a constant and turns a point into a Gaussian of that width",
          "[petlm][image]") {
    const image::Grid grid{{41, 39, 37}, 0.5};
    gpu::WorkerPool pool(2);
    std::vector<float> constant(grid.voxels(), 3);
    image::smooth(constant, grid, 4, pool);
    CHECK(*std::min_element(constant.begin(), constant.end()) == Approx(3));
    CHECK(*std::max_element(constant.begin(), constant.end()) == Approx(3));

    std::vector<float> image(grid.voxels());
    const std::size_t middle = (18UL * 39 + 19) * 41 + 20;
    image[middle] = 1;
    std::vector<float> same = image;
    image::smooth(same, grid, 0, pool);
    CHECK(same == image);
    constexpr double fwhm = 3;
    image::smooth(image, grid, fwhm, pool);
    CHECK(std::accumulate(image.begin(), image.end(), 0.0) == Approx(1));
    // Half of the maximum at half of the width, along each axis.
    for (const std::size_t stride : {1UL, 41UL, 41UL * 39})
        CHECK(image[middle + 3 * stride] / image[middle] == Approx(0.5).margin(1e-4));
}

// The input of EM: counts of pairs, randoms, weights, sensitivity; and smoothing.
#include <map>
#include <numbers>
#include <numeric>

#include "tests/tools/petlm/reconstruction/image/support.hpp"
#include "tools/petlm/reconstruction/em/line_sums.hpp"
#include "tools/petlm/reconstruction/projector/gaussian.hpp"
#include "tools/petlm/reconstruction/projector/ray.hpp"

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
            net::WorkerPool pool(threads);
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
    const std::size_t modules = std::size_t{g.modules_in_ring()} * g.modules.z;
    std::vector<std::size_t> module_of(g.crystal_count());
    for (std::uint32_t crystal = 0; crystal < module_of.size(); ++crystal) {
        const std::uint32_t around = crystal % g.crystals_in_ring() / g.crystals_per_module_y();
        module_of[crystal] =
            around + crystal / g.crystals_in_ring() / (g.blocks.z * g.crystals.z) * g.modules_in_ring();
    }
    /// The place of a pair of modules, in either order.
    const auto place = [&](std::uint32_t a, std::uint32_t b) {
        return std::min(module_of[a], module_of[b]) * modules + std::max(module_of[a], module_of[b]);
    };
    for (const auto& [difference, rings] :
         {std::pair(0U, UINT32_MAX), std::pair(2U, UINT32_MAX), std::pair(0U, 5U), std::pair(3U, 14U)}) {
        gpu::CoincidenceRules rules;
        rules.min_module_difference = difference;
        rules.max_ring_difference = rings;
        const auto rule = gpu::PairRule::of(g, rules);
        image::RandomsByModules randoms(g, rule);
        std::vector<double> delayeds(modules * modules);
        const auto records = random_records(30'000, g.crystal_count(), difference + 1);
        for (const auto& c : records) {
            if (!rule.good(c.crystal_a, c.crystal_b)) continue;
            randoms.add(c.crystal_a, c.crystal_b);
            ++delayeds[place(c.crystal_a, c.crystal_b)];
        }
        // Summed over all good pairs they equal the delayeds of each pair of modules.
        std::vector<double> sums(modules * modules);
        for (std::uint32_t a = 0; a < g.crystal_count(); ++a) {
            for (std::uint32_t b = a + 1; b < g.crystal_count(); ++b) {
                if (rule.good(a, b)) sums[place(a, b)] += randoms.expected({a, b});
            }
        }
        double all = 0;
        for (std::size_t pair = 0; pair < delayeds.size(); ++pair) {
            CHECK(sums[pair] == Approx(delayeds[pair]));
            all += delayeds[pair];
        }
        CHECK(static_cast<double>(randoms.total()) == all);
    }
}

namespace {

/// Sensitivity by brute force over all pairs of crystals, with the weights as defined, against that of the
/// program.
void check_sensitivity(const corrections::LineFactors& factors,
                       const std::function<double(std::uint32_t)>& efficiency,
                       const image::FactorOfRay& factor, double tolerance) {
    const config::Scanner scanner = short_scanner();
    gpu::CoincidenceRules rules;
    rules.min_module_difference = 2;
    rules.max_ring_difference = 8;
    const auto rule = gpu::PairRule::of(scanner.geometry, rules);
    const image::Grid grid{{16, 16, 7}, 4};
    const std::uint32_t crystals = scanner.geometry.crystal_count();
    std::vector<config::CrystalPlace> places;
    for (std::uint32_t c = 0; c < crystals; ++c)
        places.push_back(config::crystal_place(scanner, c));
    std::vector<double> sums(grid.voxels());
    const double face = scanner.dimensions.crystal_pitch_y_mm * scanner.dimensions.crystal_pitch_z_mm;
    const double volume = std::pow(grid.voxel_mm, 3);
    const image::Box box = image::Box::of(grid);
    for (std::uint32_t a = 0; a < crystals; ++a) {
        for (std::uint32_t b = a + 1; b < crystals; ++b) {
            if (!rule.good(a, b)) continue;
            config::Vector3 line{};
            for (std::size_t i = 0; i < 3; ++i)
                line[i] = places[a].front_centre_mm[i] - places[b].front_centre_mm[i];
            const double distance = std::hypot(line[0], line[1], line[2]);
            double cosines = -1;
            for (const auto& place : {places[a], places[b]}) {
                cosines *= (line[0] * place.outward[0] + line[1] * place.outward[1]) / distance;
            }
            double lines = face * face * cosines / distance / distance;  // area times solid angle
            lines *= efficiency(a) * efficiency(b) * factors.attenuation(a, b);
            const double weight = 2 * lines / (4 * std::numbers::pi) / volume;
            const config::LineEnds ends = factors.ends(a, b);
            const image::Ray ray(box, image::point_of(ends.a), image::point_of(ends.b));
            ray.walk([&](std::uint32_t voxel, float mm) { sums[voxel] += weight * mm; });
        }
    }
    net::WorkerPool pool(2);
    const auto chance = [&](image::Pair pair) {
        return efficiency(pair.a) * efficiency(pair.b) * factors.attenuation(pair.a, pair.b);
    };
    const auto summed = image::sum_of_lines(factors, grid, rule, chance, pool);
    for (std::size_t i = 0; i < sums.size(); ++i)
        REQUIRE(summed[i] == Approx(sums[i]).epsilon(1e-5).margin(1e-7));
    const auto found = image::sensitivity(factors, scanner, rule, grid, pool, factor);
    net::WorkerPool three(3);
    CHECK(image::sum_of_lines(factors, grid, rule, chance, three) == summed);
    CHECK(image::sensitivity(factors, scanner, rule, grid, three, factor) == found);
    const double largest = *std::max_element(sums.begin(), sums.end());
    CHECK(largest > 0.02);
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
        CHECK(found[i] == Approx(sums[i]).margin(tolerance * largest));
    }
    CHECK(compared > 700);
    CHECK(total == Approx(expected).epsilon(0.01));
}

}  // namespace

TEST_CASE("image: sensitivity is the sum of weight times length over all good pairs", "[petlm][image]") {
    check_sensitivity(
        corrections::LineFactors(short_scanner(), config::DepthOfInteraction::fixed(0)),
        [](std::uint32_t) { return 1; }, {}, 0.08);
}

TEST_CASE("image: sensitivity is that of lines that end behind the front faces", "[petlm][image]") {
    check_sensitivity(
        corrections::LineFactors(short_scanner(), config::DepthOfInteraction::fixed(6)),
        [](std::uint32_t) { return 1; }, {}, 0.08);
}

TEST_CASE("image: sensitivity counts each pair with its efficiencies and its attenuation", "[petlm][image]") {
    // A dead module, crystals that differ, and an object beside the axis.
    const corrections::LineFactors factors(short_scanner(), config::DepthOfInteraction::fixed(0),
                                           {{}, {"8,-5,3,9,10,0.6"}});
    const auto efficiency = [](std::uint32_t crystal) {
        if (crystal % 60 / 5 == 3) return 0.0;
        return 0.6 + 0.4 * (crystal % 3) + (crystal / 60 < 4 ? 0.3 : 0);
    };
    check_sensitivity(
        factors, efficiency,
        [&](const image::Entrance& a, const image::Entrance& b) {
            return efficiency(a.crystal) * efficiency(b.crystal) * factors.attenuation(a.at, b.at);
        },
        0.1);
}

TEST_CASE("image: EM takes factors and backgrounds of lines as a slow step does", "[petlm][image]") {
    EmInput input(cylinder_source(export_scanner(), {0, 0, 0}, 10, 20, 3000), 1);
    const auto& pairs = input.lines.pairs;
    const corrections::LineFactors factors(export_scanner(), config::DepthOfInteraction::fixed(0),
                                           {{}, {"0,0,0,12,30,0.5"}});
    const auto factor = [&](image::Pair pair) {
        return (0.5 + pair.a % 4 * 0.3) * (pair.b % 9 == 0 ? 0 : 1) * factors.attenuation(pair.a, pair.b);
    };
    const auto background = [](image::Pair pair) { return 0.25 + pair.b % 3; };
    const std::vector<std::uint32_t> counts(pairs.size(), 4);
    const image::Lines lines =
        image::make_lines(factors, input.grid, {pairs, counts}, {background, factor, {}}, 1);
    std::size_t dead = 0;
    for (const image::Pair pair : pairs)
        dead += pair.b % 9 == 0 ? 1 : 0;
    REQUIRE(dead > 0);
    REQUIRE(lines.pairs.size() == pairs.size() - dead);

    // The slow reference: one step of EM from an even image, line by line.
    const image::Box box = image::Box::of(input.grid);
    const double face =
        input.scanner.dimensions.crystal_pitch_y_mm * input.scanner.dimensions.crystal_pitch_z_mm;
    const double scale = face * face / (2 * std::numbers::pi * std::pow(input.grid.voxel_mm, 3));
    const float largest = *std::max_element(input.sensitivity.begin(), input.sensitivity.end());
    double all = 0;
    for (const float s : input.sensitivity)
        all += s > 0.02F * largest ? s : 0;
    const double start = 4 * static_cast<double>(lines.pairs.size()) / all;
    std::vector<double> sums(input.grid.voxels());
    for (const image::Pair pair : lines.pairs) {
        const config::LineEnds ends = input.geometry.ends(pair.a, pair.b);
        const image::Ray ray(box, image::point_of(ends.a), image::point_of(ends.b));
        const double weight = factor(pair) * factors.solid_angle(pair.a, pair.b, scale);
        double length = 0;
        ray.walk([&](std::uint32_t voxel, float mm) {
            if (input.sensitivity[voxel] > 0.02F * largest) length += static_cast<double>(mm);
        });
        const double expected = weight * length * start + background(pair);
        ray.walk([&](std::uint32_t voxel, float mm) {
            sums[voxel] += weight * static_cast<double>(mm) * 4 / expected;
        });
    }
    image::EmOptions options;
    const auto host = image::make_host_projector(input.grid, input.geometry, input.pool);
    const auto found = image::reconstruct(*host, input.grid, lines, input.sensitivity, input.pool, options);
    double difference = 0;
    double most = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const double expected = input.sensitivity[i] > 0.02F * largest
                                    ? start * sums[i] / static_cast<double>(input.sensitivity[i])
                                    : 0;
        difference = std::max(difference, std::abs(static_cast<double>(found.image[i]) - expected));
        most = std::max(most, expected);
    }
    CHECK(most > 0);
    CHECK(difference < 1e-4 * most);
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
    net::WorkerPool pool(2);
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

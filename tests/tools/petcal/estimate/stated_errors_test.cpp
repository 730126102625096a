// 68 % intervals hold the truth in 63 to 73 % of many scans.
#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "config/moments.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petcal/estimate/fast_pairs.hpp"
#include "tools/petcal/estimate/pairs/efficiencies.hpp"
#include "tools/petcal/estimate/pairs/fan_model.hpp"
#include "tools/petcal/estimate/pairs/known_source.hpp"
#include "tools/petcal/estimate/pairs/time_offsets.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

constexpr std::uint64_t scans = 200;

/// Of the offsets of all scans, 150 pairs per crystal each.
Coverage offset_coverage(const FastSource& source, const estimate::KnownSource& known, double random_share) {
    const config::Scanner scanner = ring_of_72();
    Coverage coverage;
    for (std::uint64_t seed = 1; seed <= scans; ++seed) {
        FastPairs pairs(scanner, seed);
        const std::size_t crystals = pairs.offsets().size();
        const auto data = pairs.differences(source, known, 75 * crystals, random_share);
        const auto found = estimate::time_offsets(crystals, data);
        REQUIRE(found.groups == 1);
        config::Moments wrong;
        for (std::size_t i = 0; i < crystals; ++i)
            wrong.add(found.ticks[i] + pairs.offsets()[i]);
        for (std::size_t i = 0; i < crystals; ++i)
            coverage.add(found.ticks[i] + pairs.offsets()[i] - wrong.mean(), found.error_ticks[i]);
    }
    return coverage;
}

/// The expected counts of pairs of an even scanner, in all.
std::vector<double> expected_pairs(const estimate::FanModel& model, double total) {
    const std::size_t n = model.geometry().crystal_count();
    const auto even = estimate::GeometricFactors::even(model.geometry());
    std::vector<double> out;
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
        std::vector<double> one(n);
        one[i] = 1;
        for (const double expected : model.sums(one, even, 1).fans) {
            out.push_back(expected);
            sum += expected / 2;
        }
    }
    for (double& expected : out)
        expected *= total / sum;
    return out;
}

void check_coverage(const Coverage& coverage) {
    CHECK(coverage.share() > 0.63);
    CHECK(coverage.share() < 0.73);
}

}  // namespace

TEST_CASE("stated errors of time offsets: an even cylinder, with randoms", "[stated]") {
    check_coverage(offset_coverage({0, 0, 0, 6, 9}, {{0, 0, -4.5}, {0, 0, 4.5}, 6}, 0.2));
}

TEST_CASE("stated errors of efficiencies: a cylinder of 0.6 of the radius of the ring", "[stated]") {
    config::Scanner scanner = ring_of_72();
    scanner.geometry = {12, {1, 1, 1}, {1, 1, 1}, {1, 4, 4}, 12, 1, 64};
    scanner.dimensions = {14, 1.7, 1.8, 10, 0.4, 0, 0};
    const std::size_t n = scanner.geometry.crystal_count();
    const estimate::FanModel model(scanner, {{0, 0, 0}, 8.4, 40});
    const std::vector<double> pairs = expected_pairs(model, 200.0 * static_cast<double>(n));
    const auto sums = [&](std::span<const double> weights, std::span<double> out) {
        for (std::size_t i = 0; i < n; ++i) {
            out[i] = 0;
            for (std::size_t j = 0; j < n; ++j)
                out[i] += pairs[i * n + j] * weights[j];
        }
    };
    Coverage coverage;
    for (std::uint64_t seed = 1; seed <= scans; ++seed) {
        std::mt19937_64 random(seed);
        std::normal_distribution<> efficiency_of(1, 0.14);
        std::vector<double> truth(n);
        double mean = 0;
        for (double& efficiency : truth) {
            efficiency = std::max(0.4, efficiency_of(random));
            mean += efficiency / static_cast<double>(n);
        }
        estimate::NetCounts counts{std::vector<double>(n), std::vector<double>(n)};
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                const double expected = pairs[i * n + j] * truth[i] * truth[j];
                if (!(expected > 0)) continue;
                const double found = std::poisson_distribution<>(expected)(random);
                counts.add(i, found, found);
                counts.add(j, found, found);
            }
        }
        const auto found = estimate::crystal_efficiencies(counts, sums);
        for (std::size_t i = 0; i < n; ++i)
            coverage.add(found.efficiency[i] * mean / truth[i] - 1, found.error[i]);
    }
    CAPTURE(coverage.share());
    check_coverage(coverage);
}

// It joins few crystals, so that most of an error is that of others.
TEST_CASE("stated errors of time offsets: a point off the axis", "[stated]") {
    check_coverage(offset_coverage({4, 1, 0, 0.1, 0.1}, {{4, 1, 0}, {4, 1, 0}, 3}, 0));
}

// 68 % intervals hold the truth in 63 to 73 % of many scans.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "config/moments.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petcal/estimate/fast_pairs.hpp"
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

void check_coverage(const Coverage& coverage) {
    CHECK(coverage.share() > 0.63);
    CHECK(coverage.share() < 0.73);
}

}  // namespace

TEST_CASE("stated errors of time offsets: an even cylinder, with randoms", "[stated]") {
    check_coverage(offset_coverage({0, 0, 0, 6, 9}, {{0, 0, -4.5}, {0, 0, 4.5}, 6}, 0.2));
}

// It joins few crystals, so that most of an error is that of others.
TEST_CASE("stated errors of time offsets: a point off the axis", "[stated]") {
    check_coverage(offset_coverage({4, 1, 0, 0.1, 0.1}, {{4, 1, 0}, {4, 1, 0}, 3}, 0));
}

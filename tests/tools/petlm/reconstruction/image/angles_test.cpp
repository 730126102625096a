// The angles of an image: which share of the decays that were found belongs to each.
#include <cmath>
#include <numbers>

#include "tests/tools/petlm/turning_run.hpp"
#include "tools/petlm/reconstruction/em/angles.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

/// 6 s at 0 degrees, 12 s at 90.
TurningRun two_stays() {
    return TurningRun({degrees_tag(0, 0), degrees_tag(6, 0), degrees_tag(6, 90), degrees_tag(18, 90)}, 18);
}

config::Scanner turning_scanner() {
    config::Scanner scanner = export_scanner();
    scanner.rotation = by_degrees;
    return scanner;
}

std::vector<petlm::LiveTime> seconds_live(const std::vector<double>& live) {
    std::vector<petlm::LiveTime> out;
    for (std::size_t i = 0; i < live.size(); ++i)
        out.push_back({{i * one_second, (i + 1) * one_second}, live[i]});
    return out;
}

}  // namespace

TEST_CASE("angles: decays count where they were found", "[petlm][image][rotation]") {
    const TurningRun run = two_stays();
    const petlm::ExportSource source(run.part(0, 18));
    const config::Scanner scanner = turning_scanner();
    const image::Angles angles(source, scanner, {{20, 20, 10}, 1});
    REQUIRE(angles.count() == 2);
    CHECK(angles.radians()[1] == Approx(std::numbers::pi / 2));
    const auto at_first = [&](const daemon::Coverage& coverage, double half_life_s,
                              const std::vector<petlm::LiveTime>& live) {
        const auto shares = angles.shares(coverage, half_life_s, live);
        REQUIRE(shares.size() == 2);
        CHECK(shares[0] + shares[1] == Approx(1));
        return shares[0];
    };
    const daemon::Coverage whole = covering(0, 18);
    CHECK(at_first(whole, 0, {}) == Approx(6.0 / 18));
    // A third of the second stay is lost.
    std::vector<double> live(18, 0.9);
    for (std::size_t i = 8; i < 12; ++i)
        live[i] = 0;
    CHECK(at_first(whole, 0, seconds_live(live)) == Approx(6.0 / 14));
    // Of the decays of a short-lived nuclide.
    const auto decays = [](double from, double to) { return std::exp2(-from / 5) - std::exp2(-to / 5); };
    CHECK(at_first(whole, 5, seconds_live(live)) == Approx(decays(0, 6) / (decays(0, 8) + decays(12, 18))));
    // A part has its own share, also of seconds that it covers in part.
    CHECK(at_first(covering(4.5, 8.25), 0, seconds_live(live)) == Approx(1.5 / 3.5));
    // Seconds that tell nothing are as the mean of the others.
    live.resize(15);
    CHECK(at_first(whole, 0, seconds_live(live)) == Approx(6 * 0.9 / (11 * 0.9 + 3 * 11 * 0.9 / 15)));
    // If nothing was found at all, it was not found at all angles alike.
    CHECK(at_first(whole, 0, seconds_live(std::vector<double>(18))) == Approx(6.0 / 18));
}

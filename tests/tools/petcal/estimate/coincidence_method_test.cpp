// The coincidence method on counts that follow from known efficiencies.
#include <cmath>
#include <random>

#include "tests/support/catch.hpp"
#include "tools/petcal/estimate/pairs/coincidence_method.hpp"

using namespace petacq;
using estimate::CoincidenceCounts;

namespace {

constexpr double activity = 2e5;
constexpr estimate::GammaYield sodium{0.999, 1.0};
constexpr double positrons = 0.9;

/// Efficiencies differ from part to part, and gammas in one of 20 detector units are those of the pair.
CoincidenceCounts counts_of(double seconds, std::mt19937_64* random = nullptr) {
    const auto drawn = [&](double mean) {
        return random == nullptr
                   ? mean
                   : static_cast<double>(std::poisson_distribution<std::int64_t>(mean)(*random));
    };
    CoincidenceCounts c;
    c.seconds = seconds;
    c.background_per_s = 500;
    c.gammas = 500 * seconds;
    for (const double pair_efficiency : {0.02, 0.05, 0.08, 0.01}) {
        const double decays = activity * seconds / 4;
        const double gamma_efficiency = 0.1 + pair_efficiency;
        c.gammas += decays * sodium.gammas * gamma_efficiency;
        estimate::PartCounts part;
        part.own_units = 0.05;
        const double pairs = decays * positrons * pair_efficiency;
        part.pairs = {pairs, pairs};
        const double triples =
            drawn(pairs * sodium.gammas_with_positron * gamma_efficiency * (1 - part.own_units));
        part.triples = {triples, triples};
        c.triples_own_units += pairs * gamma_efficiency * part.own_units;
        c.parts.push_back(part);
    }
    c.gammas = drawn(c.gammas);
    return c;
}

}  // namespace

TEST_CASE("efficiencies, their differences along the source and the branching cancel", "[activity]") {
    constexpr estimate::SummingFactor summing{0.96, 0.004};
    const auto found = estimate::coincidence_activity(counts_of(10), sodium, summing);
    CHECK(found.becquerel == Approx(activity).epsilon(1e-9));
    CHECK(found.summing_error == 0);
    CHECK(found.pair_sensitivity == Approx(0.9 * 0.04).epsilon(1e-6));
    CHECK(found.gamma_sensitivity == Approx(0.999 * 0.14).epsilon(1e-6));
    // Units in which energies add up have no triples of their own, and those that keep some apart have some.
    CoincidenceCounts adding = counts_of(10);
    const double apart = adding.triples_own_units;
    adding.triples_own_units = 0;
    const auto added = estimate::coincidence_activity(adding, sodium, summing);
    CHECK(added.becquerel == Approx(activity / 0.96).epsilon(1e-9));
    CHECK(added.summing_error == Approx(0.004));
    adding.triples_own_units = apart / 4;
    CHECK(estimate::coincidence_activity(adding, sodium, summing).becquerel ==
          Approx(activity / 0.97).epsilon(1e-9));
}

TEST_CASE("the error of the activity is its spread", "[activity]") {
    std::mt19937_64 random(1);
    constexpr int times = 400;
    double squares = 0;
    double error = 0;
    for (int i = 0; i < times; ++i) {
        const auto found = estimate::coincidence_activity(counts_of(5, &random), sodium, {});
        squares += std::pow(found.becquerel / activity - 1, 2) / times;
        error = found.error();
    }
    INFO(std::sqrt(squares) << " and " << error);
    CHECK(std::sqrt(squares) / error == Approx(1).margin(3.5 / std::sqrt(2.0 * times)));
}

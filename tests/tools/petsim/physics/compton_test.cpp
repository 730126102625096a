// Compton scatter and attenuation, against closed formulas and published tables.
#include <array>
#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petsim/physics/attenuation.hpp"
#include "tools/petsim/physics/compton.hpp"
#include "tools/petsim/physics/ray.hpp"

using namespace petacq;

namespace {

/// The integral over the cosine of f(cosine) times the Klein-Nishina density.
template <class F>
double integral(double energy, F f, double from = -1, double to = 1) {
    constexpr int steps = 20'000;
    const double width = (to - from) / steps;
    double sum = 0;
    for (int i = 0; i < steps; ++i) {
        const double c = from + (i + 0.5) * width;
        sum += f(c) * sim::klein_nishina_density(energy, c) * width;
    }
    return sum;
}

}  // namespace

TEST_CASE("a Compton scatter conserves energy and momentum", "[petsim][photons]") {
    for (const double energy : {20.0, 202.0, 511.0, 1173.0}) {
        for (int i = -8; i <= 8; ++i) {
            const double c = i / 8.0;
            const double kept = energy * sim::compton_share(energy, c);
            const double electron = energy - kept + sim::electron_keV;  // its whole energy
            const double momentum2 = energy * energy + kept * kept - 2 * energy * kept * c;
            CHECK(electron * electron ==
                  Approx(momentum2 + sim::electron_keV * sim::electron_keV).epsilon(1e-12));
        }
    }
    CHECK(511 * sim::compton_share(511, -1) == Approx(511.0 / 3));
}

TEST_CASE("the Klein-Nishina cross-section is the integral of its density", "[petsim][photons]") {
    for (const double energy : {1.0, 5.0, 6.0, 60.0, 202.0, 511.0, 1173.0}) {
        const double whole = integral(energy, [](double) { return 1.0; });
        CHECK(sim::klein_nishina_total(energy) == Approx(3.0 / 8 * whole).epsilon(2e-6));
    }
    CHECK(sim::klein_nishina_total(0) == 1);  // Thomson's
    CHECK(sim::klein_nishina_total(511) ==
          Approx(0.75 * (8.0 / 3 - 2 * std::log(3.0) + std::log(3.0) / 2 - 4.0 / 9)));
}

TEST_CASE("drawn angles have the moments and the shape of Klein and Nishina", "[petsim][photons]") {
    const double energy = GENERATE(30.0, 202.0, 511.0, 1022.0);
    CAPTURE(energy);
    sim::Random random(4, sim::Purpose::check, 0);
    constexpr int n = 200'000;
    constexpr std::size_t bins = 20;
    std::array<double, bins> counts{};
    test::Moments cosine;
    test::Moments kept;
    for (int i = 0; i < n; ++i) {
        const double c = sim::draw_compton_cosine(energy, random);
        REQUIRE(std::abs(c) <= 1);
        cosine.add(c);
        kept.add(sim::compton_share(energy, c));
        counts.at(std::min(static_cast<std::size_t>((c + 1) * bins / 2), bins - 1)) += 1;
    }
    const double whole = integral(energy, [](double) { return 1.0; });
    const double mean = integral(energy, [](double c) { return c; }) / whole;
    const double square = integral(energy, [](double c) { return c * c; }) / whole;
    const double share = integral(energy, [&](double c) { return sim::compton_share(energy, c); }) / whole;
    CHECK(cosine.mean() == Approx(mean).margin(4 * cosine.sigma() / std::sqrt(n)));
    CHECK(cosine.squares / n == Approx(square).margin(4 / std::sqrt(n)));
    CHECK(kept.mean() == Approx(share).margin(4 * kept.sigma() / std::sqrt(n)));
    double chi2 = 0;
    for (std::size_t b = 0; b < bins; ++b) {
        const double from = -1 + 2.0 * static_cast<double>(b) / bins;
        const double expected = n *
                                integral(
                                    energy, [](double) { return 1.0; }, from, from + 2.0 / bins) /
                                whole;
        chi2 += (counts.at(b) - expected) * (counts.at(b) - expected) / expected;
    }
    CHECK(chi2 < 19 + 5 * std::sqrt(2.0 * 19));
}

TEST_CASE("a scattered direction has its angle, evenly around", "[petsim][photons]") {
    sim::Random random(5, sim::Purpose::check, 0);
    test::Moments side;
    for (int i = 0; i < 20'000; ++i) {
        const sim::Vector3 before = i == 0 ? sim::Vector3{0, 0, 1} : sim::isotropic(random);
        const double cosine = i == 1 ? -1 : random.symmetric();
        const sim::Vector3 after = sim::turned(before, cosine, sim::azimuth(random));
        REQUIRE(std::hypot(after[0], after[1], after[2]) == Approx(1).epsilon(1e-12));
        REQUIRE(before[0] * after[0] + before[1] * after[1] + before[2] * after[2] ==
                Approx(cosine).margin(1e-12));
        side.add(after[0] - cosine * before[0]);
    }
    CHECK(std::abs(side.mean()) < 5 * side.sigma() / std::sqrt(side.n));
}

TEST_CASE("water and LYSO attenuate as in the tables", "[petsim][photons]") {
    const sim::Attenuation water(sim::water_per_cm, 0);
    CHECK(water.per_mm(511) == Approx(0.0096));
    CHECK(water.photo_share(60) == 0);
    // Hubbell and Seltzer, NISTIR 5632: total without coherent scatter is within 2 % of this where Compton
    // scatter prevails.
    CHECK(water.per_mm(200) == Approx(0.01370).epsilon(0.02));
    CHECK(water.per_mm(300) == Approx(0.01186).epsilon(0.02));
    CHECK(water.per_mm(500) == Approx(0.00969).epsilon(0.02));
    CHECK(water.per_mm(1000) == Approx(0.00707).epsilon(0.02));

    const sim::Attenuation lyso(0.83, 0.32);
    CHECK(lyso.per_mm(511) == Approx(0.083));
    CHECK(lyso.photo_share(511) == Approx(0.32));
    for (const double energy : {100.5, 202.0, 307.25}) {
        const double compton =
            0.083 * 0.68 * sim::klein_nishina_total(energy) / sim::klein_nishina_total(511);
        const double photo = 0.083 * 0.32 * std::pow(energy / 511, -2.6);
        CHECK(lyso.per_mm(energy) == Approx(compton + photo).epsilon(1e-3));
        CHECK(lyso.photo_share(energy) == Approx(photo / (compton + photo)).epsilon(1e-3));
    }
    CHECK(lyso.per_mm(88) > 1.5);  // mostly absorbed within a millimetre
}

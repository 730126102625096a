#include "tools/petsim/physics/spectra.hpp"

#include <algorithm>

#include "tests/support/catch.hpp"
#include "tools/petsim/random/random.hpp"

using namespace petacq;

TEST_CASE("spectra: Compton angles and lutetium", "[petsim][random]") {
    sim::Random random(2, sim::Purpose::events, 0);
    const auto compton = sim::compton_cosines();
    const auto lutetium = sim::lutetium_energies();
    double cosine = 0;
    double lowest = 1e9;
    double highest = 0;
    constexpr int n = 200'000;
    for (int i = 0; i < n; ++i) {
        cosine += compton.draw(random);
        const double e = lutetium.draw(random);
        lowest = std::min(lowest, e);
        highest = std::max(highest, e);
    }
    // The mean of the Klein-Nishina cosine at 511 keV, integrated here from the cross-section.
    double sum = 0;
    double weight = 0;
    for (int i = 0; i < 20'000; ++i) {
        const double c = -1 + (i + 0.5) / 10'000;
        const double p = 1 / (2 - c);
        const double w = p * p * (p + 1 / p + c * c - 1);
        sum += c * w;
        weight += w;
    }
    CHECK(cosine / n == Approx(sum / weight).margin(0.007));
    CHECK(lowest >= 88);  // the 88 keV gamma never leaves
    CHECK(highest > 900);
    CHECK(highest < 593 + 307 + 202 + 88 + 1);
}

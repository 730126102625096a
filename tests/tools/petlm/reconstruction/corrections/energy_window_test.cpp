// How well a run measures energies, against spectra whose width is known.
#include "tools/petlm/reconstruction/corrections/energy_window.hpp"

#include <cmath>

#include "config/base/constants.hpp"
#include "tests/support/catch.hpp"
#include "tools/petsim/random/random.hpp"

using namespace petacq;

namespace {

constexpr int peak_counts = 50'000;

/// A spectrum: of the peak, and relative to it of photons that were scattered and of gammas.
struct Mixture {
    double resolution;
    double scattered = 0;
    double gammas = 0;
    double gamma_keV = 603;  // NOLINT(readability-identifier-naming): a unit
};

corrections::PhotopeakWidth measure(const Mixture& mixture, const config::Energy& window) {
    sim::Random random(3, sim::Purpose::events, 0);
    corrections::PhotopeakWidth out;
    const auto add = [&](double energy) {
        const double sigma =
            mixture.resolution / config::fwhm_per_sigma * std::sqrt(corrections::photopeak * energy);
        const auto found = static_cast<float>(energy + sigma * random.normal());
        if (found >= window.lower_keV && found < window.upper_keV) out.add(found);
    };
    for (int i = 0; i < peak_counts; ++i)
        add(corrections::photopeak);
    for (int i = 0; i < mixture.scattered * peak_counts; ++i)
        add(330 + (corrections::photopeak - 330) * random.uniform());
    for (int i = 0; i < mixture.gammas * peak_counts; ++i)
        add(mixture.gamma_keV);
    return out;
}

double resolution(const Mixture& mixture, float lower, float upper) {
    const config::Energy window{true, lower, upper};
    return measure(mixture, window).window(window).resolution;
}

}  // namespace

TEST_CASE("photopeak: its width is that of 511 keV, whatever else is beside it", "[petlm][corrections]") {
    const double width = GENERATE(0.01, 0.04, 0.08, 0.12, 0.16, 0.2);
    // The windows of a run: wide, cut above, and cut below.
    const auto [lower, upper] =
        GENERATE(std::pair(350.0F, 900.0F), std::pair(440.0F, 580.0F), std::pair(480.0F, 650.0F));
    for (const double scattered : {0.0, 0.6}) {
        for (const double gammas : {0.0, 0.1, 0.4}) {
            CAPTURE(width, lower, upper, scattered, gammas);
            // A window that holds little but the peak tells a wide one from the rest less well.
            const double error = width < 0.2 ? 0.03 : 0.05;
            CHECK(resolution({width, scattered, gammas}, lower, upper) == Approx(width).epsilon(error));
        }
    }
}

TEST_CASE("photopeak: its width is known within 2 % in the usual window", "[petlm][corrections]") {
    const double width = GENERATE(0.1, 0.13, 0.17);
    for (const double gammas : {0.0, 0.2}) {
        CAPTURE(width, gammas);
        CHECK(resolution({width, 0.4, gammas}, 350, 650) == Approx(width).epsilon(0.02));
        CHECK(resolution({width, 0.4, gammas, 628}, 350, 650) == Approx(width).epsilon(0.02));
    }
    // Too near to the peak to be told from it altogether.
    const double near = resolution({0.12, 0.4, 0.2, 559}, 350, 650);
    CHECK(near > 0.12);
    CHECK(near < 1.15 * 0.12);
}

TEST_CASE("photopeak: energies below it are counted within the window", "[petlm][corrections]") {
    constexpr double width = 0.17;
    sim::Random random(3, sim::Purpose::events, 0);
    corrections::PhotopeakWidth photopeak;
    for (int i = 0; i < 20'000; ++i) {
        photopeak.add(static_cast<float>(511 * (1 + width / config::fwhm_per_sigma * random.normal())));
        photopeak.add(static_cast<float>(350 + 150 * random.uniform()));  // scattered
    }
    photopeak.add(std::nanf(""));
    const auto window = photopeak.window(config::Energy{true, 425, 640});
    CHECK(window.resolution == Approx(width).epsilon(0.03));
    CHECK(window.lower == 425);
    CHECK(window.upper == 640);
    CHECK(window.accepted(511) == Approx(0.995).margin(0.01));
    CHECK(window.accepted(425) == Approx(0.5).margin(0.01));
    // Half of the energies lie below the photopeak, from 511 - 2.5 sigma on, but only some within the window.
    const auto wide = photopeak.window(config::Energy{true, 350, 900});
    CHECK(wide.photopeak_begins() == Approx(511 * (1 - 2.5 * width / config::fwhm_per_sigma)).epsilon(0.01));
    CHECK(wide.low_share.value() == Approx((wide.photopeak_begins() - 350) / 150 / 2).epsilon(0.1));
    CHECK(window.low_share.value() == 0);
    CHECK(wide.accepted_low(511) == Approx(0.0062).margin(0.001));
    // Without a filter all energies count.
    CHECK(photopeak.window(config::Energy{false, 425, 640}).accepted(200) == Approx(1));
    // Nothing is known.
    const auto unknown = corrections::PhotopeakWidth().window(std::nullopt);
    CHECK(unknown.lower == 350);
    CHECK(unknown.resolution == 0.12);
    CHECK_FALSE(unknown.low_share);
    // A window beside the peak tells no width.
    CHECK(resolution({width}, 600, 700) == 0.12);
}

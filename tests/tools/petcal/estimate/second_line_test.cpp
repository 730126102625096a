// The non-linearity of a true detector from hits of two simulated sources: a positron emitter and Cs-137.
#include <algorithm>
#include <cmath>
#include <vector>

#include "config/make_calibration.hpp"
#include "config/spectra.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petcal/estimate/simulated_scan.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petcal/base/units.hpp"
#include "tools/petcal/estimate/response.hpp"
#include "tools/petcal/results/energy_factors.hpp"
#include "tools/petsim/simulation/events/event_generator.hpp"

using namespace petacq;

namespace {

constexpr double caesium = 661.7;  // keV

/// Two rings of modules with few crystals each.
config::Scanner ring_scanner() {
    config::Scanner s;
    s.name = "ring";
    s.tick_ps = 10;
    s.geometry = {3, {1, 1, 1}, {1, 1, 2}, {1, 5, 4}, 3, 2, 64};
    s.dimensions = {20, 1.5, 1.6, 10, 0.2, 0.3, 0.4};
    return s;
}

/// The spectra that the daemon would count from a long cylinder.
config::Spectra spectra_of(const config::Scanner& scanner, const sim::Detector& detector,
                           const config::Calibration& in_use, double photon_kev) {
    const config::Geometry& g = scanner.geometry;
    sim::Options options = test::cylinder_scan(8, 30, 5, 0.6, 1);
    options.activity[0].photon_kev = photon_kev;
    const sim::InverseCalibration numbers(scanner, in_use);
    const sim::EventGenerator events(scanner, numbers, options, &detector);
    config::Spectra out = config::Spectra::none(g);
    sim::Chunk chunk;
    for (std::uint64_t i = 0; i < events.chunk_count(); ++i) {
        events.generate(i, chunk);
        for (const sim::Hit& hit : chunk.hits) {
            net::Frame frame{};
            frame.head_marker = net::default_head_marker;
            frame.tail_marker = net::default_tail_marker;
            frame.bdm = static_cast<std::uint8_t>(hit.unit / g.du_count);
            frame.du = static_cast<std::uint8_t>(hit.unit % g.du_count);
            frame.x = hit.x;
            frame.y = hit.y;
            frame.time = hit.raw_time;
            frame.energy = hit.adc;
            const sim::Conversion c =
                numbers.convert(frame, net::default_head_marker, net::default_tail_marker);
            if (c.status != sim::Conversion::Status::good) continue;
            const auto bin = std::min(c.energy / config::energy_bin_keV, float{config::energy_bins - 1});
            ++out.energies[std::size_t{c.crystal} * config::energy_bins + static_cast<std::size_t>(bin)];
        }
    }
    return out;
}

}  // namespace

TEST_CASE("second line: factors follow the non-linearity of the true detector") {
    const config::Scanner scanner = ring_scanner();
    const config::Geometry& g = scanner.geometry;
    sim::DetectorModel model;
    model.spot_sigma = 0.15;
    model.nonlinearity = 0.12;
    const sim::Detector detector = sim::make_detector(scanner, model);
    config::Calibration in_use = sim::calibration_of(scanner, detector);
    in_use.bins = 1;
    in_use.energy_factor.assign(g.crystal_count(), 0.25F);
    const auto first = spectra_of(scanner, detector, in_use, 0);
    const auto second = spectra_of(scanner, detector, in_use, caesium);

    std::vector<petcal::UnitLines> units(std::size_t{g.bdm_count} * g.du_count);
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        constexpr std::size_t bins = config::energy_bins;
        units[unit].first = petcal::derive_unit_energies(petcal::unit_spectra(g, first, unit), bins,
                                                         petcal::peaks_from, petcal::peaks_to);
        units[unit].second = petcal::derive_second_line(petcal::unit_spectra(g, second, unit), bins,
                                                        units[unit].first, caesium / 511);
        REQUIRE(units[unit].refused().empty());
    }
    const auto linear = petcal::energy_result(g, in_use, units, 0);
    const auto bent = petcal::energy_result(g, in_use, units, caesium);
    CHECK(linear.bins == 1);
    CHECK(bent.bins > 300);

    test::Moments pulls;
    test::Moments deviation;
    test::Moments wrong_linear;
    test::Moments wrong_bent;
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local) {
            const auto number = static_cast<std::uint32_t>(unit);
            const sim::TrueCrystal& c =
                detector.crystals[g.crystal(number / g.du_count, number % g.du_count, local)];
            const double expected = adc_of(c, caesium) / caesium / (adc_of(c, 511) / 511) - 1;
            const auto found = petcal::nonlinearity_of(petcal::factors_of(g, in_use, unit, local),
                                                       units[unit], local, caesium);
            REQUIRE(found);
            deviation.add(expected);
            pulls.add((found->deviation - expected) / found->error);
            const std::size_t crystal = unit * g.crystals_per_du() + local;
            for (const double energy : {350.0, 450.0, 600.0, 660.0}) {
                const double adc = std::round(adc_of(c, energy));
                wrong_linear.add(100 * (adc * double{linear.energy_factor[crystal]} / energy - 1));
                const std::size_t bin =
                    std::min<std::size_t>(static_cast<std::size_t>(adc) / 10, bent.bins - 1);
                wrong_bent.add(100 *
                               (adc * double{bent.energy_factor[crystal * bent.bins + bin]} / energy - 1));
            }
        }
    }
    const auto rms = [](const test::Moments& m) { return std::sqrt(m.squares / m.n); };
    CAPTURE(deviation.mean(), pulls.mean(), pulls.sigma(), rms(wrong_linear), rms(wrong_bent));
    CHECK(deviation.mean() == Approx(-0.031).margin(0.004));
    CHECK(std::abs(pulls.mean()) < 1);
    CHECK(pulls.sigma() < 1.5);
    CHECK(rms(wrong_linear) > 2);
    CHECK(rms(wrong_bent) < 0.6);
}

TEST_CASE("second line: responses and factors") {
    const petcal::Response r = petcal::response_of(1900, 511, 2380, caesium);
    CHECK(r.adc(511) == Approx(1900));
    CHECK(r.adc(caesium) == Approx(2380));
    CHECK(r.bend > 0);
    CHECK(petcal::response_with(0, 2044, 511).adc(100) == Approx(400));
    // Factors and back; the last one holds for all higher ADC counts.
    std::vector<float> factors(300);
    petcal::fill_factors(r, factors);
    for (const double energy : {100.0, 350.0, 511.0, 661.7, 800.0}) {
        CAPTURE(energy);
        CHECK(petcal::adc_at(factors, energy) == Approx(r.adc(energy)).epsilon(0.001));
    }
    CHECK(petcal::adc_at(std::vector<float>{0.25F}, 511) == Approx(2044));
    CHECK(petcal::adc_at(std::vector<float>{0.0F}, 511) == 0);
    // One that saturates before the last bin keeps the last factor that an energy has.
    petcal::fill_factors(petcal::response_with(0.004, 1000, 511), factors);
    CHECK(factors.back() > factors.front());
    CHECK(std::all_of(factors.begin(), factors.end(), [](float f) { return std::isfinite(f) && f > 0; }));
}

// A SiPM of which a share 1 - exp(-x) of the cells fires: two lines give the other energies, too.
TEST_CASE("second line: an exponential saturation is followed between and around the lines") {
    const double x = 0.25;  // photons for each cell at 511 keV: 3.5 % fewer counts per keV at 661.7 keV
    const auto adc = [&](double energy) { return 8000 * -std::expm1(-x * energy / 511); };
    const petcal::Response r = petcal::response_of(adc(511), 511, adc(caesium), caesium);
    for (const double energy : {350.0, 450.0, 600.0, 700.0}) {
        CAPTURE(energy);
        CHECK(r.adc(energy) == Approx(adc(energy)).epsilon(0.002));
    }
}

// Drawing a true detector, and the calibration that fits it.
#include "tools/petsim/detector/make_detector.hpp"

#include <cmath>

#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petsim/common.hpp"

namespace petacq::test {

namespace {

sim::DetectorModel plain_model() {
    sim::DetectorModel m;
    m.seed = 7;
    return m;
}

Moments moments(const sim::Detector& d, float sim::TrueCrystal::*member) {
    Moments out;
    for (const auto& c : d.crystals)
        out.add(c.*member);
    return out;
}

}  // namespace

TEST_CASE("spots without jitter lie inside the regions of make_calibration with the same seed",
          "[petsim][detector]") {
    const auto scanner = small_scanner();
    const config::Geometry& g = scanner.geometry;
    auto model = plain_model();
    model.spot_jitter = 0;
    const auto detector = sim::make_detector(scanner, model);
    const auto calibration = small_calibration();  // seed 7
    const std::size_t positions = std::size_t{g.position_size} * g.position_size;
    for (std::uint32_t unit = 0; unit < g.bdm_count * g.du_count; ++unit) {
        for (std::uint32_t origin = 0; origin < g.crystals_per_du(); ++origin) {
            const auto& c = detector.crystals.at(
                g.crystal(unit / g.du_count, unit % g.du_count, g.local_of_origin(origin)));
            const auto x = static_cast<std::size_t>(std::lround(c.spot_x));
            const auto y = static_cast<std::size_t>(std::lround(c.spot_y));
            REQUIRE(calibration.position_table.at(unit * positions + x + y * g.position_size) == origin);
        }
    }
}

TEST_CASE("a detector has the wanted means and spreads", "[petsim][detector]") {
    const auto scanner = small_scanner();
    auto model = plain_model();
    model.gain = 5;
    model.gain_spread = 0.1;
    model.nonlinearity = 0.2;
    model.time_spread_ps = 800;
    model.resolution = 0.11;
    model.resolution_spread = 0.05;
    model.efficiency_spread = 0.12;
    model.dead = 0.01;
    model.noisy = 0.02;
    const auto d = sim::make_detector(scanner, model);
    const double n = scanner.geometry.crystal_count();
    const auto check = [&](float sim::TrueCrystal::*member, double mean, double sigma) {
        const Moments m = moments(d, member);
        CHECK(m.mean() == Approx(mean).margin(5 * sigma / std::sqrt(n)));
        CHECK(m.sigma() == Approx(sigma).epsilon(5 / std::sqrt(2 * n)));
    };
    check(&sim::TrueCrystal::gain, 5, 0.5);
    check(&sim::TrueCrystal::nonlinearity, 0.2, 0.2 / std::sqrt(12));
    check(&sim::TrueCrystal::time_offset_ps, 0, 800);
    check(&sim::TrueCrystal::energy_resolution, 0.11, 0.0055);
    check(&sim::TrueCrystal::efficiency, 1, 0.12);
    std::uint32_t dead = 0;
    std::uint32_t noisy = 0;
    for (const auto& c : d.crystals) {
        dead += c.state == sim::CrystalState::dead ? 1 : 0;
        noisy += c.state == sim::CrystalState::noisy ? 1 : 0;
    }
    CHECK(dead == std::lround(0.01 * n));
    CHECK(noisy == std::lround(0.02 * n));
}

TEST_CASE("the seed decides the detector, and one property does not depend on another",
          "[petsim][detector]") {
    const auto scanner = small_scanner();
    auto model = plain_model();
    const auto a = sim::make_detector(scanner, model);
    const auto same = sim::make_detector(scanner, model);
    model.gain_spread = 0;
    const auto even = sim::make_detector(scanner, model);
    model.seed = 8;
    const auto other = sim::make_detector(scanner, model);
    for (std::size_t i = 0; i < a.crystals.size(); ++i) {
        REQUIRE(a.crystals[i].gain == same.crystals[i].gain);
        REQUIRE(a.crystals[i].spot_x == same.crystals[i].spot_x);
        REQUIRE(a.crystals[i].time_offset_ps == even.crystals[i].time_offset_ps);
        REQUIRE(even.crystals[i].gain == 4.0F);
        REQUIRE(a.crystals[i].spot_x != other.crystals[i].spot_x);
    }
}

TEST_CASE("an invalid model is refused with its range", "[petsim][detector]") {
    const auto refused = [](double sim::DetectorModel::*member, double value) {
        sim::DetectorModel model;
        model.*member = value;
        return complaint([&] { sim::make_detector(small_scanner(), model); });
    };
    CHECK(lacking(refused(&sim::DetectorModel::spot_sigma, -0.1), {"spot_sigma", "0.0", "1.0"}) == "");
    CHECK(lacking(refused(&sim::DetectorModel::gain, 0), {"gain"}) == "");
    CHECK(lacking(refused(&sim::DetectorModel::dead, 1.5), {"dead"}) == "");
    CHECK(lacking(refused(&sim::DetectorModel::noise_hz, NAN), {"noise_hz", "nan"}) == "");
    CHECK(refused(&sim::DetectorModel::crosstalk, 1).empty());
}

TEST_CASE("the response of a crystal and its inverse", "[petsim][detector]") {
    sim::TrueCrystal c;
    c.gain = 4;
    CHECK(sim::adc_of(c, 511) == Approx(2044));
    CHECK(sim::adc_of(c, 100) == Approx(400));
    c.nonlinearity = 0.1F;
    CHECK(sim::adc_of(c, 511) == Approx(2044));
    CHECK(sim::adc_of(c, 100) > 400);  // the gain falls with the energy
    CHECK(sim::adc_of(c, 1000) < 4000);
    for (const double energy : {1.0, 60.0, 511.0, 1022.0, 5000.0})
        CHECK(sim::energy_of(c, sim::adc_of(c, energy)) == Approx(energy));
    CHECK(std::isinf(sim::energy_of(c, 4 * 1.1 * 511 / 0.1)));
}

TEST_CASE("the calibration that fits a detector: nearest spot, true response, true offsets",
          "[petsim][detector]") {
    const auto scanner = small_scanner();
    const config::Geometry& g = scanner.geometry;
    auto model = plain_model();
    model.nonlinearity = GENERATE(0.0, 0.15);
    const auto d = sim::make_detector(scanner, model);
    const auto c = sim::calibration_of(scanner, d);
    config::check_calibration(g, c);
    CHECK(c.bins == (model.nonlinearity == 0 ? 1 : 512));
    const std::size_t positions = std::size_t{g.position_size} * g.position_size;
    std::size_t outside = 0;
    for (std::uint32_t i = 0; i < positions; ++i) {  // of detector unit 1 of module 2
        const std::uint16_t origin = c.position_table.at((2 * g.du_count + 1) * positions + i);
        std::uint32_t nearest = 0;
        double best = 1e9;
        double reach = 0;
        for (std::uint32_t o = 0; o < g.crystals_per_du(); ++o) {
            const auto& crystal = d.crystals.at(g.crystal(2, 1, g.local_of_origin(o)));
            const std::uint32_t row = i / g.position_size;
            const double dx = i % g.position_size - double{crystal.spot_x};
            const double dy = row - double{crystal.spot_y};
            if (dx * dx + dy * dy >= best) continue;
            best = dx * dx + dy * dy;
            nearest = o;
            reach = std::max(std::abs(dx) * g.crystals.z, std::abs(dy) * g.crystals.y) / g.position_size;
        }
        if (origin == 255) {
            REQUIRE(reach > 1 - 1e-6);
            ++outside;
        } else {
            REQUIRE(origin == nearest);
        }
    }
    CHECK(outside < positions / 10);
    for (const std::uint32_t local : {0U, 7U, 19U}) {
        const std::uint32_t crystal = g.crystal(3, 2, local);
        const auto& t = d.crystals.at(crystal);
        for (const double energy : {100.0, 202.0, 511.0, 800.0}) {
            const auto adc = static_cast<std::uint32_t>(std::lround(sim::adc_of(t, energy)));
            const std::uint32_t bin = std::min(adc / 10, c.bins - 1);
            const float factor =
                c.energy_factor.at(((3 * g.du_count + 2) * g.crystals_per_du() + local) * c.bins + bin);
            CHECK(static_cast<double>(adc) * static_cast<double>(factor) == Approx(energy).margin(0.5));
        }
        CHECK(c.time_offset.at(crystal) == std::lround(t.time_offset_ps / scanner.tick_ps));
    }
}

}  // namespace petacq::test

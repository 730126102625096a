// Photopeaks against the true ones.
#include "tools/petcal/estimate/photopeak.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tools/petcal/estimate/unit_energies.hpp"

namespace petacq::test {

namespace {

constexpr std::size_t bins = 256;
constexpr std::size_t crystals = 225;

/// The spectra of a unit with gains that spread by `spread`.
struct TrueUnit {
    std::vector<std::uint32_t> spectra = std::vector<std::uint32_t>(crystals * bins);
    std::vector<double> places;  ///< of the peaks, bins

    TrueUnit(int counts, double spread, bool scatter, double energy = 511) {
        std::mt19937_64 random(5);
        std::normal_distribution<> normal;
        std::uniform_real_distribution<> uniform;
        for (std::size_t i = 0; i < crystals; ++i) {
            const double gain = 1 + spread * normal(random);
            places.push_back(energy * gain / 4);
            const auto add = [&](double e) {
                const double measured = e + 0.12 / 2.3548 * std::sqrt(energy * e) * normal(random);
                const double bin = std::clamp(measured * gain / 4, 0.0, bins - 1.0);
                ++spectra[i * bins + static_cast<std::size_t>(bin)];
            };
            for (int k = 0; k < counts; ++k) {
                add(energy);
                if (!scatter) continue;
                add(energy * 2 / 3 * std::sqrt(uniform(random)));
                if (uniform(random) < 0.5) add(energy * (1 + uniform(random)) / 2);
            }
        }
    }

    /// The rms of the relative errors of the fitted peaks.
    [[nodiscard]] double error(const petcal::UnitEnergies& found) const {
        double sum = 0;
        double count = 0;
        for (std::size_t i = 0; i < crystals; ++i) {
            if (found.crystals[i].state != petcal::PeakState::fitted) continue;
            sum += std::pow(found.crystals[i].peak.place / places[i] - 1, 2);
            count += 1;
        }
        return std::sqrt(sum / count);
    }
    [[nodiscard]] petcal::UnitEnergies derive() const {
        return petcal::derive_unit_energies(spectra, bins, 62, 240);
    }
};

std::size_t fitted(const petcal::UnitEnergies& unit) {
    return static_cast<std::size_t>(
        std::count_if(unit.crystals.begin(), unit.crystals.end(),
                      [](const auto& c) { return c.state == petcal::PeakState::fitted; }));
}

}  // namespace

TEST_CASE("photopeaks of 2000 counts are found to 0.3 percent") {
    for (const bool scatter : {false, true}) {
        CAPTURE(scatter);
        const TrueUnit unit(2000, 0.08, scatter);
        const auto found = unit.derive();
        CHECK(found.refused == "");
        CHECK(fitted(found) == crystals);
        CHECK(unit.error(found) < 0.003);
    }
}

TEST_CASE("how good photopeaks are: the figures in calibrate.md", "[.figures]") {
    for (const int counts : {500, 2000, 10000}) {
        const TrueUnit unit(counts, 0.08, true);
        std::printf("%d counts: %.2f %%\n", counts, 100 * unit.error(unit.derive()));
    }
}

TEST_CASE("photopeaks are found when the factors are wrong by a third") {
    for (const double energy : {340.0, 680.0}) {
        CAPTURE(energy);
        const TrueUnit unit(1000, 0.05, true, energy);
        const auto found = unit.derive();
        CHECK(found.refused == "");
        CHECK(unit.error(found) < 0.005);
    }
}

TEST_CASE("a peak knows its error") {
    const TrueUnit unit(2000, 0.0, true);
    const auto found = unit.derive();
    double mean = 0;
    for (const auto& c : found.crystals)
        mean += c.peak.error / c.peak.place / crystals;
    CHECK(mean == Approx(unit.error(found)).epsilon(0.25));
}

TEST_CASE("68 % of the peaks lie within their error") {
    for (const int counts : {500, 3000}) {
        const TrueUnit unit(counts, 0.06, true);
        const auto found = unit.derive();
        double inside = 0;
        double all = 0;
        for (std::size_t i = 0; i < crystals; ++i) {
            if (found.crystals[i].state != petcal::PeakState::fitted) continue;
            inside += std::abs(found.crystals[i].peak.place - unit.places[i]) < found.crystals[i].peak.error
                          ? 1
                          : 0;
            all += 1;
        }
        INFO(counts << ": " << inside / all);
        CHECK(all > 200);
        // 225 crystals: 3 % by chance.
        CHECK(inside / all > 0.6);
        CHECK(inside / all < 0.76);
    }
}

TEST_CASE("crystals without enough counts are told apart from those without a peak") {
    TrueUnit unit(1000, 0.05, true);
    std::fill_n(unit.spectra.begin(), bins, 0);               // crystal 0: dead
    std::fill_n(unit.spectra.begin() + bins, bins, 1000000);  // crystal 1: flat
    const auto found = unit.derive();
    CHECK(found.refused == "");
    CHECK(found.crystals[0].state == petcal::PeakState::few_counts);
    CHECK(found.crystals[1].state != petcal::PeakState::fitted);
    CHECK(fitted(found) == crystals - 2);
}

TEST_CASE("a unit without photopeaks is refused with what was expected") {
    TrueUnit unit(100, 0.05, true);
    CHECK(lacking(unit.derive().refused,
                  {"expected photopeaks with at least 250 counts in at least 113 of 225", "found 0"}) == "");
    for (std::uint32_t& counts : unit.spectra)
        counts = 0;
    CHECK(unit.derive().refused != "");
    for (std::size_t i = bins - 1; i < unit.spectra.size(); i += bins)
        unit.spectra[i] = 5000;
    CHECK(lacking(unit.derive().refused, {"100 % of them are in the last bin"}) == "");
    for (std::uint32_t& counts : unit.spectra)
        counts = 4294967295U;
    CHECK(unit.derive().refused != "");
}

}  // namespace petacq::test

// Fits of lifetime spectra with known truth.
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "config/base/constants.hpp"
#include "tests/support/catch.hpp"
#include "tools/petlm/lifetime/decayed.hpp"
#include "tools/petlm/lifetime/fit.hpp"

using namespace petacq;
using lifetime::Component;
using lifetime::FitSettings;
using lifetime::LifetimeFit;
using lifetime::Spectrum;

namespace {

struct Truth {
    double ortho_ns = 1.8;
    double ortho = 0.28;
    double para = 0.10;
    double fwhm_ns = 0.3;
    double offset_ns = 0.13;
    double triples = 30'000;
    double chance_per_bin = 8;
    double randoms = 0;  ///< random prompts with a gamma of their own
    double weight = 0.5;
};

/// Draws times one by one.
class Generator {
  public:
    explicit Generator(unsigned seed) : random_(seed) {}

    Spectrum operator()(const Truth& t, bool delayed_gammas = true) {
        Spectrum s;
        s.first_ns = -4;
        s.bin_ns = 0.05;
        s.coincident.assign(400, 0);
        s.delayed.assign(delayed_gammas ? 400 : 0, 0);
        s.randoms.assign(400, 0);
        s.randoms_squares.assign(400, 0);
        const double sigma = t.fwhm_ns / config::fwhm_per_sigma;
        for (std::uint64_t i = poisson(t.triples); i != 0; --i) {
            const double which = uniform();
            const double mean = which < t.ortho ? t.ortho_ns : which < t.ortho + t.para ? 0.125 : 0.39;
            count(s, s.coincident, t.offset_ns + sigma * normal_(random_) + mean * exponential_(random_));
        }
        for (double& bin : s.coincident)
            bin += static_cast<double>(poisson(t.chance_per_bin));
        for (double& bin : s.delayed)
            bin += static_cast<double>(poisson(t.chance_per_bin));
        // Differences of two photons within a window: a triangle.
        const auto random_time = [&] { return t.offset_ns + 2 * (uniform() - uniform()); };
        for (std::uint64_t i = poisson(t.randoms); i != 0; --i)
            count(s, s.coincident, random_time());
        for (std::uint64_t i = poisson(t.randoms / t.weight); i != 0; --i)
            count(s, s.randoms, random_time(), t.weight);
        for (std::size_t i = 0; i < s.randoms.size(); ++i)
            s.randoms_squares[i] = s.randoms[i] * t.weight;
        return s;
    }

  private:
    std::uint64_t poisson(double mean) {
        return mean > 0 ? std::poisson_distribution<std::uint64_t>(mean)(random_) : 0;
    }
    double uniform() { return std::uniform_real_distribution<>()(random_); }
    static void count(const Spectrum& s, std::vector<double>& bins, double ns, double weight = 1) {
        const double place = std::floor((ns - s.first_ns) / s.bin_ns);
        if (place >= 0 && place < static_cast<double>(bins.size()))
            bins[static_cast<std::size_t>(place)] += weight;
    }

    std::mt19937_64 random_;
    std::normal_distribution<> normal_;
    std::exponential_distribution<> exponential_;
};

struct Pulls {
    std::vector<double> values;
    void add(const lifetime::Estimate& found, double truth) {
        REQUIRE(found.error > 0);
        values.push_back((found.value - truth) / found.error);
    }
    void check() const {
        const auto n = static_cast<double>(values.size());
        const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
        double squares = 0;
        for (const double value : values)
            squares += (value - mean) * (value - mean);
        const double spread = std::sqrt(squares / (n - 1));
        INFO("mean of pulls " << mean << ", spread " << spread << " of " << n);
        CHECK(std::abs(mean) < 3.5 / std::sqrt(n));
        CHECK(std::abs(spread - 1) < 3.5 / std::sqrt(2 * n));
    }
};

void check_pulls(unsigned fits, const Truth& truth, const FitSettings& settings) {
    Generator generate(11);
    Pulls ortho;
    Pulls intensity;
    Pulls mean;
    Pulls width;
    double deviance = 0;
    double freedom = 0;
    for (unsigned i = 0; i < fits; ++i) {
        const Spectrum spectrum = generate(truth);
        const LifetimeFit fit = lifetime::fit_lifetimes(spectrum, settings);
        CHECK(fit.converged);
        ortho.add(fit.ortho_ns, truth.ortho_ns);
        intensity.add(fit.intensity(Component::ortho), truth.ortho);
        mean.add(fit.mean_ns,
                 truth.ortho * truth.ortho_ns + truth.para * 0.125 + (1 - truth.ortho - truth.para) * 0.39);
        if (!settings.resolution_ns) width.add(fit.resolution_ns, truth.fwhm_ns);
        deviance += fit.deviance;
        freedom += fit.freedom;
    }
    ortho.check();
    intensity.check();
    // Where the fit puts para-positronium at 0, what is correlated with it is told too exactly.
    if (settings.offset_ns) mean.check();
    if (!settings.resolution_ns && settings.offset_ns) width.check();
    CHECK(std::abs(deviance / freedom - 1) < 0.1);
}

}  // namespace

TEST_CASE("an exponential decay convolved with a Gaussian is the integral of both", "[lifetime]") {
    for (const double lifetime_ns : {0.05, 0.4, 5.0}) {
        for (const double sigma : {0.02, 0.1, 1.0}) {
            for (const double t : {-30.0, -0.3, 0.0, 0.1, 1.0, 20.0}) {
                // P(x + y < t) by the rule of the middle over the quantiles of the decay.
                constexpr int parts = 20'000;
                double sum = 0;
                for (int i = 0; i < parts; ++i) {
                    const double decay = -lifetime_ns * std::log((i + 0.5) / parts);
                    sum += 0.5 * std::erfc(-(t - decay) / sigma / std::sqrt(2.0));
                }
                INFO("lifetime " << lifetime_ns << ", sigma " << sigma << ", t " << t);
                CHECK(std::abs(lifetime::decayed_before(t, lifetime_ns, sigma) - sum / parts) < 1e-4);
            }
        }
    }
}

TEST_CASE("the errors of fitted lifetimes hold", "[lifetime]") {
    FitSettings settings;
    settings.offset_ns = 0.13;
    check_pulls(25, Truth{}, settings);
}

TEST_CASE("the errors of fitted lifetimes hold: everything fitted, with random pairs", "[lifetime]") {
    Truth truth;
    truth.randoms = 3000;
    check_pulls(25, truth, {});
}

TEST_CASE("the errors of fitted lifetimes hold: many fits", "[.long][lifetime]") {
    FitSettings settings;
    for (const bool offset_known : {true, false}) {
        for (const double ortho_ns : {1.3, 1.8, 2.6}) {
            for (const double randoms : {0.0, 10'000.0}) {
                Truth truth;
                truth.ortho_ns = ortho_ns;
                truth.randoms = randoms;
                settings.offset_ns = offset_known ? std::optional(truth.offset_ns) : std::nullopt;
                INFO("lifetime " << ortho_ns << ", randoms " << randoms << ", offset known " << offset_known);
                check_pulls(400, truth, settings);
            }
        }
    }
}

TEST_CASE("a million triples give the lifetime of ortho-positronium within 20 ps", "[lifetime]") {
    Truth truth;
    truth.triples = 1e6;
    truth.chance_per_bin = 200;
    truth.randoms = 50'000;
    const LifetimeFit fit = lifetime::fit_lifetimes(Generator(3)(truth), {});
    CHECK(std::abs(fit.ortho_ns.value - truth.ortho_ns) < 0.02);
    CHECK(fit.ortho_ns.error < 0.01);
    CHECK(std::abs(fit.resolution_ns.value - truth.fwhm_ns) < 0.01);
    CHECK(std::abs(fit.offset_ns.value - truth.offset_ns) < 0.02);
    CHECK(fit.has_ortho());
}

TEST_CASE("random pairs that are not known of shift the lifetime, and known ones do not", "[lifetime]") {
    Truth truth;
    truth.triples = 3e5;
    truth.randoms = 60'000;
    Spectrum spectrum = Generator(4)(truth);
    const LifetimeFit with = lifetime::fit_lifetimes(spectrum, {});
    CHECK(std::abs(with.ortho_ns.value - truth.ortho_ns) < 4 * with.ortho_ns.error);
    CHECK(with.deviance < 1.3 * with.freedom);
    spectrum.randoms.assign(spectrum.bins(), 0);
    spectrum.randoms_squares.assign(spectrum.bins(), 0);
    const LifetimeFit without = lifetime::fit_lifetimes(spectrum, {});
    CHECK(without.deviance > 3 * without.freedom);
}

TEST_CASE("a spectrum without delayed gammas is fitted with a free background", "[lifetime]") {
    Truth truth;
    truth.triples = 1e5;
    const LifetimeFit fit = lifetime::fit_lifetimes(Generator(5)(truth, false), {});
    CHECK(std::abs(fit.ortho_ns.value - truth.ortho_ns) < 4 * fit.ortho_ns.error);
    CHECK(std::abs(fit.chance_per_bin.value - truth.chance_per_bin) < 4 * fit.chance_per_bin.error);
}

TEST_CASE("without ortho-positronium none is found", "[lifetime]") {
    Truth truth;
    truth.ortho = 0;
    truth.triples = 1e5;
    const LifetimeFit fit = lifetime::fit_lifetimes(Generator(6)(truth), {});
    CHECK_FALSE(fit.has_ortho());
    CHECK(fit.intensity(Component::ortho).value < 0.01);
}

TEST_CASE("what few triples do not tell is unknown, and nothing has an error beyond its range",
          "[lifetime]") {
    Truth truth;
    truth.triples = 150;
    truth.fwhm_ns = 2;
    truth.chance_per_bin = 0.5;
    unsigned unknown = 0;
    unsigned known = 0;
    const auto check = [&](const lifetime::Estimate& e, double largest) {
        CHECK(std::isnan(e.value) == std::isnan(e.error));
        CHECK((std::isnan(e.value) || e.error <= largest));
        ++(std::isnan(e.value) ? unknown : known);
    };
    for (unsigned seed = 0; seed < 10; ++seed) {
        const LifetimeFit fit = lifetime::fit_lifetimes(Generator(seed)(truth), {});
        for (const lifetime::Estimate* time : {&fit.ortho_ns, &fit.mean_ns, &fit.resolution_ns})
            check(*time, time->value);
        for (const lifetime::Estimate& intensity : fit.intensities)
            check(intensity, 1);
        check(fit.offset_ns, 20);
        if (std::isnan(fit.intensity(Component::ortho).value)) CHECK_FALSE(fit.has_ortho());
    }
    INFO(known << " known");
    CHECK(unknown > 0);
    CHECK(known > 10);
}

TEST_CASE("too few triples are refused", "[lifetime]") {
    Truth truth;
    truth.triples = 50;
    CHECK_THROWS_AS(lifetime::fit_lifetimes(Generator(7)(truth), {}), std::invalid_argument);
}

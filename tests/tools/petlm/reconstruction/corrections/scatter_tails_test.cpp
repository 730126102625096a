// The scale of scatter by the lines that miss the object, on numbers drawn from a known distribution.
#include "tools/petlm/reconstruction/corrections/scatter_tails.hpp"

#include <cmath>
#include <random>

#include "tests/support/catch.hpp"
#include "tests/tools/petlm/support.hpp"

using namespace petacq;
using namespace petacq::test;
using corrections::LineFactors;
using corrections::ScatterTails;

namespace {

/// Scatter whose square root is a parabola across around (2, -3) mm and along the axis around 4 mm, on top of
/// randoms, in a scanner with uneven crystals.
struct Scattered {
    static config::Scanner one_row() {
        config::Scanner scanner = export_scanner();
        scanner.geometry.modules.z = 1;
        scanner.geometry.bdm_count /= 2;
        return scanner;
    }

    config::Scanner scanner = one_row();
    gpu::PairRule rule = gpu::PairRule::of(scanner.geometry, {});
    LineFactors lines;
    net::WorkerPool pool{2};
    double scale = 0;
    static constexpr double randoms_of_each = 0.02;

    explicit Scattered(const std::string& object)
        : lines(scanner, config::DepthOfInteraction::fixed(0), {{}, {object}}) {}

    static double efficiency(std::uint32_t crystal) {
        return crystal % 50 == 7 ? 0 : 0.5 + crystal % 3 * 0.5;
    }
    [[nodiscard]] double weight(std::uint32_t a, std::uint32_t b) const {
        return lines.solid_angle(a, b) * efficiency(a) * efficiency(b);
    }
    [[nodiscard]] double truth(std::uint32_t a, std::uint32_t b) const {
        const auto [from, to] = lines.ends(a, b);
        const double dx = to[0] - from[0];
        const double dy = to[1] - from[1];
        const double across = (dy * (2 - from[0]) - dx * (-3 - from[1])) / std::max(std::hypot(dx, dy), 1e-9);
        const double along = (from[2] + to[2]) / 2 - 4;
        const double root = 1 - across * across / (35 * 35) - along * along / (50 * 50);
        return root > 0 ? scale * weight(a, b) * root * root : 0;
    }
    template <class Use>
    void each_pair(Use use) const {
        for (std::uint32_t a = 0; a < scanner.geometry.crystal_count(); ++a) {
            for (std::uint32_t b = a + 1; b < scanner.geometry.crystal_count(); ++b)
                if (rule.good(a, b)) use(a, b);
        }
    }
    ScatterTails tails(std::size_t max_pairs = 8'000'000) {
        return {scanner,
                rule,
                lines,
                [this](std::uint32_t a, std::uint32_t b) { return truth(a, b); },
                [](std::uint32_t, std::uint32_t) { return randoms_of_each; },
                pool,
                max_pairs};
    }
};

}  // namespace

TEST_CASE("corrections: the lines that miss the object tell how much scatter there is",
          "[petlm][corrections]") {
    Scattered s("1,-2,0,10,60");
    s.scale = 1;
    double sum = 0;
    s.each_pair([&](std::uint32_t a, std::uint32_t b) { sum += s.truth(a, b); });
    s.scale = 300'000 / sum;
    // Of four pairs one is known, as when the others did not fit into the memory.
    ScatterTails all = s.tails();
    ScatterTails quarter = s.tails(400'000);
    CHECK(all.total() == Approx(300'000));
    CHECK(quarter.total() == Approx(300'000).epsilon(0.01));
    constexpr double more = 1.3;  // than expected
    std::mt19937 random(5);
    std::uint64_t number = 0;
    s.each_pair([&](std::uint32_t a, std::uint32_t b) {
        const double true_pairs = s.lines.object().integral(s.lines.ends(a, b).a, s.lines.ends(a, b).b) * 20;
        std::poisson_distribution<int> drawn(more * s.truth(a, b) + Scattered::randoms_of_each +
                                             true_pairs * s.weight(a, b) * s.scale);
        const int prompts = drawn(random);
        all.add(a, b, prompts);
        if (number++ % 4 == 0) quarter.add(a, b, prompts);
    });
    // Halfway to the ratio, by the certainties of the shape and of the simulation.
    constexpr double trust = 1 / (ScatterTails::shape_sigma * ScatterTails::shape_sigma);
    constexpr double doubt = 1 / (ScatterTails::simulation_sigma * ScatterTails::simulation_sigma);
    const double scale = (more * trust + doubt) / (trust + doubt);
    CHECK(all.counts().trues == Approx(more * all.counts().expected).margin(4 * all.counts().noise));
    CHECK(all.counts().noise < 0.03 * all.counts().trues);
    CHECK(all.scale() == Approx(scale).epsilon(0.02));
    CHECK(quarter.scale(0.25) == Approx(scale).epsilon(0.04));
}

TEST_CASE("corrections: where no line misses the object the simulation stands as it is",
          "[petlm][corrections]") {
    Scattered wide("0,0,0,31,200");
    wide.scale = 1;
    CHECK(wide.tails(100'000).scale() == 1);
    // Few counts change little.
    Scattered narrow("0,0,0,5,200");
    narrow.scale = 1e-5;
    ScatterTails noise = narrow.tails(100'000);
    narrow.each_pair([&](std::uint32_t a, std::uint32_t b) {
        if ((a * 7919 + b) % 50 == 0) noise.add(a, b, 1);  // as many as randoms
    });
    CHECK(noise.scale() == Approx(1).margin(0.3));
}

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
                [](std::uint32_t a, std::uint32_t b) { return efficiency(a) * efficiency(b); },
                [](std::uint32_t, std::uint32_t) { return randoms_of_each; },
                pool,
                max_pairs};
    }
    [[nodiscard]] corrections::OfPair expected() const {
        return [this](std::uint32_t a, std::uint32_t b) { return truth(a, b); };
    }
    /// In all pairs, without randoms.
    void make_total(double counts) {
        scale = 1;
        double sum = 0;
        each_pair([&](std::uint32_t a, std::uint32_t b) { sum += truth(a, b); });
        scale = counts / sum;
    }
    [[nodiscard]] double true_pairs(std::uint32_t a, std::uint32_t b) const {
        const config::LineEnds ends = lines.ends(a, b);
        return lines.object().integral(ends.a, ends.b) * 20 * weight(a, b) * scale;
    }
    /// Draws the prompts of all pairs: scatter times `more`, randoms and true pairs.
    template <class Use>
    void draw(double more, Use use) const {
        std::mt19937 random(5);
        each_pair([&](std::uint32_t a, std::uint32_t b) {
            if (!(efficiency(a) * efficiency(b) > 0)) return;
            std::poisson_distribution<int> drawn(more * truth(a, b) + randoms_of_each + true_pairs(a, b));
            use(a, b, drawn(random));
        });
    }
};

}  // namespace

TEST_CASE("corrections: the lines that miss the object tell how much scatter there is",
          "[petlm][corrections]") {
    Scattered s("1,-2,0,10,60");
    s.make_total(300'000);
    // Of four pairs one is known, as when the others did not fit into the memory.
    ScatterTails all = s.tails();
    ScatterTails quarter = s.tails(400'000);
    constexpr double more = 1.3;  // than expected
    std::uint64_t number = 0;
    double true_pairs = 0;
    s.draw(more, [&](std::uint32_t a, std::uint32_t b, int prompts) {
        true_pairs += s.true_pairs(a, b);
        all.add(a, b, prompts);
        if (number++ % 4 == 0) quarter.add(a, b, prompts);
    });
    CHECK(all.trues() == Approx(true_pairs + more * 300'000).epsilon(0.02));
    CHECK(quarter.trues(0.25) == Approx(all.trues()).epsilon(0.02));
    const auto scale = all.scale(s.expected(), s.pool);
    CHECK(all.total() == Approx(300'000));
    CHECK(scale.found == Approx(more * scale.expected).epsilon(0.05));
    CHECK(scale.error < 0.03);
    CHECK(scale.ratio == Approx(more).margin(4 * scale.error));
    CHECK(scale.factor == scale.ratio);
    const auto of_quarter = quarter.scale(s.expected(), s.pool, 0.25);
    CHECK(quarter.total() == Approx(300'000).epsilon(0.01));
    CHECK(of_quarter.error == Approx(2 * scale.error).epsilon(0.4));
    CHECK(of_quarter.factor == Approx(more).margin(4 * of_quarter.error));
}

TEST_CASE("corrections: tails that agree with the simulation leave it as it is", "[petlm][corrections]") {
    Scattered s("1,-2,0,10,60");
    s.make_total(300'000);
    ScatterTails tails = s.tails();
    ScatterTails with_unscattered = s.tails();
    ScatterTails other_shape = s.tails();
    s.draw(1, [&](std::uint32_t a, std::uint32_t b, int prompts) {
        tails.add(a, b, prompts);
        with_unscattered.add(a, b, prompts);
        other_shape.add(a, b, prompts);
    });
    const auto scale = tails.scale(s.expected(), s.pool);
    CHECK(scale.ratio == Approx(1).margin(2 * scale.error));
    CHECK(scale.factor == 1);
    // Pairs that scattered in the crystals alone are no scatter of the object.
    std::vector<double> unscattered(ScatterTails::bins);
    for (std::uint32_t a = 0; a < s.scanner.geometry.crystal_count(); ++a) {
        for (std::uint32_t b = 0; b < a; ++b)
            if (s.rule.good(a, b)) unscattered[tails.bin_of(a, b)] += 0.25 * s.truth(a, b);
    }
    const auto less = with_unscattered.scale(s.expected(), s.pool, 1, unscattered);
    CHECK(less.ratio == Approx(scale.ratio - 0.25).margin(0.01));
    CHECK(less.unscattered == Approx(0.25 * scale.expected).epsilon(0.01));
    // A simulation that spreads the same scatter otherwise along the axis knows it less well.
    const auto otherwise = other_shape.scale(
        [&](std::uint32_t a, std::uint32_t b) {
            const config::LineEnds ends = s.lines.ends(a, b);
            const double z = ends.a[2] + ends.b[2];
            return (z > 0 ? 1.3 : 0.7) * s.truth(a, b);
        },
        s.pool);
    CHECK(otherwise.error > 3 * scale.error);
}

TEST_CASE("corrections: where no line misses the object the simulation stands as it is",
          "[petlm][corrections]") {
    Scattered wide("0,0,0,31,200");
    wide.scale = 1;
    const auto none = wide.tails(100'000).scale(wide.expected(), wide.pool);
    CHECK(none.factor == 1);
    CHECK(std::isinf(none.error));
    // Few counts change nothing.
    Scattered narrow("0,0,0,5,200");
    narrow.scale = 1e-5;
    ScatterTails noise = narrow.tails(100'000);
    narrow.draw(1, [&](std::uint32_t a, std::uint32_t b, int prompts) { noise.add(a, b, prompts); });
    CHECK(noise.scale(narrow.expected(), narrow.pool).factor == 1);
    // So do randoms that leave much more than expected, but by chance as well.
    Scattered faint("0,0,0,5,200");
    faint.make_total(30);
    ScatterTails bright = faint.tails();
    faint.draw(23, [&](std::uint32_t a, std::uint32_t b, int prompts) { bright.add(a, b, prompts); });
    const auto uncertain = bright.scale(faint.expected(), faint.pool);
    CAPTURE(uncertain.ratio, uncertain.error);
    CHECK(uncertain.ratio - 1 > 2 * uncertain.error);
    CHECK(uncertain.error > 0.3 * uncertain.ratio);
    CHECK(uncertain.factor == 1);
}

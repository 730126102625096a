// The expected randoms of any scanner against the truth: prompts whose singles come from two annihilations.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "config/scanner/scanner.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/randoms/good_pairs.hpp"
#include "gpu/randoms/randoms.hpp"
#include "tests/gpu/arrangements/annihilations.hpp"
#include "tests/gpu/reference.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq;
using namespace petacq::test;

struct Searched {
    std::uint64_t randoms = 0;
    std::uint64_t delayeds = 0;
    gpu::IntervalSums sums;
};

Searched search(const Annihilations& events, const gpu::PipelineOptions& options,
                const config::Calibration& calibration) {
    const auto pipeline = gpu::make_cpu_pipeline(options, calibration);
    const gpu::FrameSpan span{reinterpret_cast<const std::byte*>(events.singles.data()),
                              static_cast<std::uint32_t>(events.singles.size()), 0, UINT64_MAX};
    gpu::Slice slice;
    slice.spans = {&span, 1};
    slice.watermark = UINT64_MAX;
    slice.close_at = UINT64_MAX;
    slice.ends_interval = true;
    pipeline->submit(slice);
    gpu::SliceResult result;
    REQUIRE(pipeline->collect(result, true));
    Searched found;
    for (const gpu::Coincidence& pair : result.coincidences) {
        if (pair.kind == gpu::Kind::delayed) {
            ++found.delayeds;
        } else if (events.random(pair)) {
            ++found.randoms;
        }
    }
    found.sums = result.sums;
    return found;
}

/// Every policy and mode. `part`: by how much of the truth an estimate may be off.
void check_randoms(const std::string& name, double radius_mm, double half_length_mm, double part,
                   std::optional<std::uint32_t> max_ring_difference = {}) {
    const config::Scanner scanner = config::load_scanner(
        std::string(PETACQ_SOURCE_DIR) + "/config/examples/scanners/" + name + ".scanner.json");
    const config::Geometry& g = scanner.geometry;
    Rng rng(51);
    const Annihilations events = annihilations(*g.pairs, radius_mm, half_length_mm, 250'000, 500, 0.15, rng);
    config::Calibration calibration;
    calibration.bins = 1;
    calibration.position_table.assign(std::size_t{g.unit_count()} * g.position_size * g.position_size, 0);
    calibration.energy_factor.assign(std::size_t{g.unit_count()} * g.crystals_per_du(), 1.0F);
    gpu::PipelineOptions options;
    options.input = gpu::Input::singles;
    options.geometry = g;
    options.energy.filter = false;
    options.rules.window = 50;
    options.rules.delay = 4000;
    if (max_ring_difference) options.rules.max_ring_difference = *max_ring_difference;
    options.max_slice_frames = static_cast<std::uint32_t>(events.singles.size());
    for (const auto mode : {gpu::WindowMode::single, gpu::WindowMode::every}) {
        for (int policy = 0; policy < 6; ++policy) {
            options.rules.mode = mode;
            options.rules.policy = static_cast<gpu::MultiplesPolicy>(policy);
            const Searched found = search(events, options, calibration);
            gpu::RandomsEstimator estimator(g, options.rules);
            gpu::ExpectedRandoms expected;
            estimator.estimate(found.sums, events.ticks, expected);
            const auto truth = static_cast<double>(found.randoms);
            const double from_delayeds = estimator.delayeds_weight() * static_cast<double>(found.delayeds);
            INFO(name << ", mode " << static_cast<int>(mode) << ", policy " << policy << ": " << truth
                      << " randoms, expected " << expected.total / truth << " of them, by delayeds "
                      << from_delayeds / truth);
            CHECK(truth > 1500);
            CHECK(std::abs(expected.total - truth) < 3.5 * std::sqrt(truth) + part * truth);
            CHECK(std::abs(from_delayeds - truth) < 3.5 * std::sqrt(2 * truth) + part * truth);
            // By pairs they add up to the same, and over the crystals to twice as many.
            double of_crystals = 0;
            for (const double randoms : expected.per_crystal)
                of_crystals += randoms;
            CHECK(of_crystals == Approx(2 * expected.total).epsilon(1e-6));
        }
    }
}

}  // namespace

TEST_CASE("randoms: as many as there are in a box of panels") {
    check_randoms("box", 10, 15, 0.01);
}
TEST_CASE("randoms: as many as there are with an insert, three kinds of pairs and a field of view") {
    check_randoms("insert", 15, 15, 0.01);
}
TEST_CASE("randoms: as many as there are between two heads") {
    check_randoms("two-heads", 10, 15, 0.01);
}
TEST_CASE("randoms: as many as there are with a least angle and rings of different types") {
    check_randoms("two-rings", 15, 10, 0.01, 12);
}

TEST_CASE("good pairs: with a field of view and many crystals, sums are near those over all pairs") {
    const config::Geometry g =
        config::load_scanner(std::string(PETACQ_SOURCE_DIR) + "/config/examples/scanners/insert.scanner.json")
            .geometry;
    gpu::GoodPairs pairs(g, {});
    REQUIRE_FALSE(pairs.cells().bins->exact());
    // Rates that differ around the axis, along it, and from crystal to crystal.
    Rng rng(52);
    gpu::CrystalValues values;
    for (std::vector<double>& of_kind : values.of)
        of_kind.assign(g.crystal_count(), 0);
    std::vector<double>& rates = values.of.front();
    for (std::uint32_t i = 0; i < g.crystal_count(); ++i) {
        const auto& c = g.pairs->crystals[i];
        const double z = c.z_um / 1000.0;
        rates[i] = (1 + 0.5 * c.x_um / std::hypot(c.x_um, c.y_um)) * std::exp(-z * z / 2000) *
                   (0.7 + 0.6 * rng.unit());
    }
    gpu::PairChances once;
    once.of[0][0] = 1;
    const std::size_t cells = pairs.cells().count();
    gpu::PairProducts found;
    pairs.use(values);
    pairs.products(std::vector<gpu::PairChances>(cells * cells, once), found);
    double all_found = 0;
    double all_exact = 0;
    for (std::uint32_t i = 0; i < g.crystal_count(); i += 31) {
        double exact = 0;
        for (std::uint32_t j = 0; j < g.crystal_count(); ++j)
            exact += pairs.rule().good(i, j) ? rates[i] * rates[j] : 0;
        INFO("crystal " << i);
        CHECK(found.per_crystal[i] == Approx(exact).epsilon(0.06));
        all_found += found.per_crystal[i];
        all_exact += exact;
    }
    CHECK(all_found == Approx(all_exact).epsilon(0.003));
}

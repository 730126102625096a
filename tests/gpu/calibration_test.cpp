// A pipeline that gets another calibration goes on like one that was made with it.
#include <algorithm>
#include <string>

#include "tests/gpu/harness.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq;
using namespace petacq::test;

/// The same frames under another calibration: other crystals, energies, number of bins, and times.
Case recalibrated(Case c, Rng& rng) {
    config::Calibration& calibration = c.setup.calibration;
    std::rotate(calibration.position_table.begin(),
                calibration.position_table.begin() + static_cast<std::ptrdiff_t>(rng.between<std::size_t>(
                                                         0, calibration.position_table.size() - 1)),
                calibration.position_table.end());
    const std::size_t slots = calibration.energy_factor.size() / calibration.bins;
    calibration.bins = rng.between<std::uint32_t>(1, 9);
    calibration.energy_factor.resize(slots * calibration.bins);
    for (float& factor : calibration.energy_factor)
        factor = 0.2F + 0.001F * static_cast<float>(rng.between(0, 100));
    calibration.time_offset.resize(c.setup.geometry.crystal_count());
    for (std::int32_t& offset : calibration.time_offset)
        offset = rng.between(-1000, 1000);
    return c;
}

std::string difference_between(gpu::Pipeline& pipeline, const Case& c, Rng& rng) {
    PlanOptions options;
    options.slice_frames = 300;
    options.disorder = 20;
    Plan plan = make_plan(c, options, rng);
    const Expected expected = reference_run(c, plan);
    return run_and_compare(pipeline, c, plan, expected, rng);
}

}  // namespace

TEST_CASE("calibration: a pipeline takes another one between segments") {
    for (const Backend& backend : backends()) {
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            Rng rng(seed);
            Case first = make_case(Family::poisson_1, seed, 2000);
            first.options.threads = 3;
            first.options.spectra = true;
            first.options.emit_singles = true;
            const Case second = recalibrated(first, rng);
            gpu::PipelineOptions options = first.options;
            options.max_slice_frames = static_cast<std::uint32_t>(first.frames.size());
            options.max_pending_singles = first.frames.size();
            const auto pipeline = backend.make(options, first.setup.calibration);
            for (const Case* c : {&first, &second, &first}) {
                pipeline->set_calibration(c->setup.calibration);
                INFO(backend.name << ", seed " << seed);
                REQUIRE(difference_between(*pipeline, *c, rng) == "");
                pipeline->reset();
            }
        }
    }
}

TEST_CASE("calibration: not while slices are in flight") {
    for (const Backend& backend : backends()) {
        INFO(backend.name);
        Rng rng(1);
        const Case c = make_case(Family::poisson_1, 1, 100);
        const Plan plan = make_plan(c, {}, rng);
        const auto pipeline = backend.make(bounded(c, plan), c.setup.calibration);
        const PlannedSlice& slice = plan.slices.front();
        pipeline->submit({0, slice.spans, slice.watermark, slice.close_at});
        CHECK_THROWS_AS(pipeline->set_calibration(c.setup.calibration), std::logic_error);
        gpu::SliceResult result;
        CHECK(pipeline->collect(result, true));
        CHECK_NOTHROW(pipeline->set_calibration(c.setup.calibration));
    }
}

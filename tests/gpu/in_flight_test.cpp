// Several slices in flight: what is known as of the last collected one, failures in the threads behind, and
// another calibration when none is.
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>

#include "tests/gpu/harness.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq;
using namespace petacq::test;

void submit(gpu::Pipeline& pipeline, const PlannedSlice& slice, std::uint64_t id) {
    pipeline.submit({id, slice.spans, slice.watermark, slice.close_at});
}

bool same(const gpu::SinglesHistograms& a, const gpu::SinglesHistograms& b) {
    return a.per_crystal == b.per_crystal && a.energy == b.energy &&
           a.temperature_sum_16ths == b.temperature_sum_16ths && a.temperature_count == b.temperature_count;
}

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

TEST_CASE("in flight: histograms are those of the collected slices") {
    for (const Backend& backend : backends()) {
        INFO(backend.name);
        Case c = make_case(Family::poisson_1, 11, 40'000);
        Rng rng(12);
        PlanOptions options;
        options.slice_frames = 4000;
        const Plan plan = make_plan(c, options, rng);
        c.options.threads = 3;
        const auto one_by_one = backend.make(bounded(c, plan), c.setup.calibration);
        const auto many = backend.make(bounded(c, plan), c.setup.calibration);
        gpu::SliceResult result;
        gpu::SinglesHistograms expected;
        gpu::SinglesHistograms got;
        std::size_t submitted = 0;
        for (std::size_t i = 0; i < plan.slices.size(); ++i) {
            for (; submitted < plan.slices.size() && submitted - i < many->depth(); ++submitted)
                submit(*many, plan.slices[submitted], submitted);
            one_by_one->histograms(expected);
            many->histograms(got);
            REQUIRE(same(got, expected));
            submit(*one_by_one, plan.slices[i], i);
            REQUIRE(one_by_one->collect(result, true));
            REQUIRE(many->collect(result, true));
        }
        one_by_one->histograms(expected);
        many->histograms(got);
        CHECK(same(got, expected));
    }
}

TEST_CASE("in flight: a pipeline may be destroyed while it works") {
    for (const Backend& backend : backends()) {
        INFO(backend.name);
        Case c = make_case(Family::poisson_1, 13, 200'000);
        Rng rng(14);
        PlanOptions options;
        options.slice_frames = 30'000;
        const Plan plan = make_plan(c, options, rng);
        c.options.threads = 4;
        for (int turn = 0; turn < 5; ++turn) {
            const auto pipeline = backend.make(bounded(c, plan), c.setup.calibration);
            CHECK_THROWS_AS(
                [&] {
                    for (std::size_t i = 0; i <= pipeline->depth(); ++i)
                        submit(*pipeline, plan.slices[0], i);
                }(),
                std::logic_error);
            CHECK_THROWS_AS(pipeline->reset(), std::logic_error);
        }
    }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Run by the next one, in a process whose memory no other test has used.
TEST_CASE("memory is used up", "[.]") {
    mallopt(M_ARENA_MAX, 1);  // threads have no memory in reserve
    Case c = make_case(Family::poisson_0_1, 15, 300'000);
    c.options.threads = 2;
    Rng rng(16);
    PlanOptions options;
    options.slice_frames = 150'000;
    const Plan plan = make_plan(c, options, rng);
    const auto pipeline = gpu::make_cpu_pipeline(bounded(c, plan), c.setup.calibration);
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
    const rlimit none{1, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_AS, &none) == 0);
    std::vector<std::unique_ptr<char[]>> blocks(1'000);
    for (auto& block : blocks)
        block.reset(new (std::nothrow) char[100'000]);
    std::string reason;
    try {
        gpu::SliceResult result;
        submit(*pipeline, plan.slices[0], 0);
        pipeline->collect(result, true);
    } catch (const std::runtime_error& e) {
        reason = e.what();
    }
    blocks.clear();
    REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
    CHECK(reason == std::bad_alloc().what());
    CHECK_THROWS_AS(submit(*pipeline, plan.slices[1], 1), std::runtime_error);
}

TEST_CASE("in flight: want of memory in a thread of the CPU back-end reaches the caller") {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "test_gpu", "memory is used up", nullptr);
        _exit(127);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}
#endif

TEST_CASE("calibration: a pipeline takes another one between segments") {
    for (const Backend& backend : backends()) {
        for (std::uint64_t seed = 1; seed <= 6; ++seed) {
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
            for (const Case* c : std::initializer_list<const Case*>{&first, &second, &first}) {
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

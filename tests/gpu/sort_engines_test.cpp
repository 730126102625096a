// The output of the CUDA back-end does not depend on the engine that sorts: properties with each of them.
#ifdef PETACQ_CUDA

#include <string>
#include <vector>

#include "gpu/cuda/cuda_pipeline.hpp"
#include "gpu/sort/sort.hpp"
#include "tests/gpu/cuda_usable.hpp"
#include "tests/gpu/harness.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq::test;
using petacq::config::SortEngine;
using petacq::gpu::MultiplesPolicy;
using petacq::gpu::WindowMode;

// `frames`: 0 for small cases.
void check_engines(const std::vector<Family>& families, std::uint64_t seeds, std::size_t frames) {
    const Backend backend{"cuda", petacq::gpu::make_cuda_pipeline};
    for (const SortEngine engine : petacq::gpu::sort::engines()) {
        for (const Family family : families) {
            for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
                Case c = make_case(family, seed + 900, frames);
                c.options.sort_engine = engine;
                c.options.rules.mode = seed % 2 == 0 ? WindowMode::single : WindowMode::every;
                c.options.rules.policy = static_cast<MultiplesPolicy>(seed % 6);
                c.options.emit_singles = true;
                PlanOptions options;
                options.disorder = c.frames.size();
                options.slice_frames = seed % 3 == 0 ? c.frames.size() / 2 + 1 : 0;
                options.max_span = 300;
                const std::string difference = try_case(backend, c, options, seed);
                INFO(name_of(engine) << ", " << describe(c, options) << difference);
                REQUIRE(difference.empty());
            }
        }
    }
}

}  // namespace

TEST_CASE("cuda: any sort engine gives the same") {
    if (!cuda_usable()) return;
    check_engines({Family::tiny, Family::poisson_1, Family::equal_times, Family::bursts, Family::ties,
                   Family::near_zero, Family::near_max, Family::mixed},
                  6, 0);
}

// Long runs of equal times, and more singles than one block sorts.
TEST_CASE("cuda: any sort engine gives the same for large slices") {
    if (!cuda_usable()) return;
    check_engines({Family::equal_times, Family::ties, Family::mixed, Family::huge_gaps}, 2, 20'000);
}

TEST_CASE("cuda: the description names the sort engine") {
    if (!cuda_usable()) return;
    Case c = make_case(Family::tiny, 1);
    c.options.max_slice_frames = 100;
    c.options.max_pending_singles = 1000;
    c.options.sort_engine = SortEngine::odd_even;
    const auto pipeline = petacq::gpu::make_cuda_pipeline(c.options, c.setup.calibration);
    CHECK(pipeline->description().find("odd-even") != std::string::npos);
}

#endif

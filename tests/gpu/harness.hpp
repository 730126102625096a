// Feeds plans to a pipeline and compares everything that comes out with the reference.
#pragma once

#include <string>

#include "gpu/pipeline.hpp"
#include "tests/gpu/backends.hpp"
#include "tests/gpu/plan.hpp"

namespace petacq::test {

/// Submits and collects at the pipeline's depth, at random moments. Empty when all agrees, else the first
/// difference. Frames are overwritten once their slice has been collected. Leaves the pipeline closed: reset
/// it before the next plan.
std::string run_and_compare(gpu::Pipeline& pipeline, const Case& c, Plan& plan, const Expected& expected,
                            Rng& rng);

/// Options of the case with bounds that just hold the plan.
gpu::PipelineOptions bounded(const Case& c, const Plan& plan);

/// One case on one pipeline of its own: a plan made from the options and the seed. Empty or the difference.
std::string try_case(const Backend& backend, const Case& c, const PlanOptions& options,
                     std::uint64_t plan_seed);

/// What to know of a failure: family, seed, rules, plan; then the fewest frames found that still fail.
std::string report(const Backend& backend, const Case& c, const PlanOptions& options,
                   std::uint64_t plan_seed);

std::string to_string(const gpu::Single& s);
std::string to_string(const gpu::Coincidence& c);
std::string to_string(const gpu::FrameCounts& c);
std::string to_string(const gpu::SingleCounts& c);
std::string describe(const Case& c, const PlanOptions& options);

}  // namespace petacq::test

// Feeds plans to a pipeline and compares everything that comes out with the reference.
#pragma once

#include <string>

#include "gpu/pipeline.hpp"
#include "tests/gpu/backends.hpp"
#include "tests/gpu/plan.hpp"

namespace petacq::test {

/// Submits and collects at the pipeline's depth, at random moments. Returns the first difference, or "" if
/// everything agrees. Overwrites the frames of a slice after collecting it. Leaves the pipeline closed: reset
/// it before the next plan.
std::string run_and_compare(gpu::Pipeline& pipeline, const Case& c, Plan& plan, const Expected& expected,
                            Rng& rng);

/// Options of the case with bounds that just hold the plan.
gpu::PipelineOptions bounded(const Case& c, const Plan& plan);

/// Runs one case on a separate pipeline, with a plan made from the options and the seed. Returns the
/// difference or "".
std::string try_case(const Backend& backend, const Case& c, const PlanOptions& options,
                     std::uint64_t plan_seed);

/// Describes a failure: family, seed, rules, plan, and the fewest frames found that still fail.
std::string report(const Backend& backend, const Case& c, const PlanOptions& options,
                   std::uint64_t plan_seed);

std::string to_string(const gpu::Single& s);
std::string to_string(const gpu::Coincidence& c);
std::string to_string(const gpu::Triple& t);
std::string to_string(const gpu::Tag& t);
std::string to_string(const gpu::FrameCounts& c);
std::string to_string(const gpu::TagCounts& c);
std::string to_string(const gpu::SingleCounts& c);
std::string to_string(const gpu::GammaCounts& c);
std::string describe(const Case& c, const PlanOptions& options);

}  // namespace petacq::test

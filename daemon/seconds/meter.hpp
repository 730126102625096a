// Makes seconds of the sums that the pipeline hands over.
#pragma once

#include <memory>

#include "config/scanner/geometry.hpp"
#include "daemon/seconds/second.hpp"
#include "gpu/rules/coincidence_rules.hpp"

namespace petacq::daemon {

/// One thread at a time.
class SecondsMeter {
  public:
    SecondsMeter(const config::Geometry& geometry, const gpu::CoincidenceRules& rules,
                 std::uint64_t ticks_per_s)
        : ticks_per_s_(ticks_per_s), rules_(rules), estimator_(geometry, rules) {}

    /// Fills in what follows from the range and the sums of a second.
    void complete(Second& second);
    /// Makes a second. Takes the memory of the sums. REQUIRES: the report has a number for each module.
    std::shared_ptr<const Second> measure(gpu::TickRange range, gpu::IntervalSums& sums, BoardReport report);
    /// The sums over all seconds so far.
    [[nodiscard]] const SecondsTotal& total() const { return total_; }

  private:
    const std::uint64_t ticks_per_s_;
    const gpu::CoincidenceRules rules_;
    gpu::RandomsEstimator estimator_;
    SecondsTotal total_;
};

}  // namespace petacq::daemon

// Expected randoms from the histograms of singles that the acquisition publishes about once a second.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/acquisition/acquisition.hpp"
#include "gpu/randoms.hpp"

namespace petacq::daemon {

/// One thread at a time. Never throws: if the estimator throws, that is logged once, and the expected randoms
/// are unknown from then on.
class RandomsMeter {
  public:
    explicit RandomsMeter(std::unique_ptr<gpu::RandomsEstimator> estimator);

    /// Does nothing unless there are new histograms. The average counts from `start`.
    void observe(const AcquisitionSnapshot& now, const AcquisitionSnapshot& start);

    /// Between the latest two histograms; nullptr until there are two.
    [[nodiscard]] std::shared_ptr<const gpu::ExpectedRandoms> recent() const { return recent_; }
    /// From the mean singles rates since `start`, pairs per second.
    [[nodiscard]] std::optional<double> average() const { return average_; }

  private:
    using Time = std::chrono::steady_clock::time_point;
    void update(const AcquisitionSnapshot& now, const AcquisitionSnapshot& start);
    /// False if no time has passed.
    bool estimate(const AcquisitionSnapshot& now, const gpu::SinglesHistograms& earlier, Time taken,
                  gpu::ExpectedRandoms& out);

    std::unique_ptr<gpu::RandomsEstimator> estimator_;  // nullptr after a failure
    std::shared_ptr<const gpu::SinglesHistograms> latest_;
    Time latest_taken_;
    std::vector<double> rates_;
    std::shared_ptr<const gpu::ExpectedRandoms> recent_;
    std::optional<double> average_;
};

}  // namespace petacq::daemon

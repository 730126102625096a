// Expected randoms from the histograms of singles that the acquisition publishes about once a second.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/acquisition.hpp"
#include "gpu/randoms.hpp"

namespace petacq::daemon {

/// One thread at a time. Never throws: what the estimator throws is logged once, and nothing is known after.
class RandomsMeter {
  public:
    explicit RandomsMeter(std::unique_ptr<gpu::RandomsEstimator> estimator);

    /// Works only when the histograms are others than last time. `began`: from when on the average counts.
    void observe(const AcquisitionSnapshot& now, const AcquisitionSnapshot& began);

    /// Between the latest two histograms; nullptr until there are two.
    [[nodiscard]] std::shared_ptr<const gpu::ExpectedRandoms> recent() const { return recent_; }
    /// Of the mean singles rates since the beginning, pairs per second.
    [[nodiscard]] std::optional<double> average() const { return average_; }

  private:
    using Time = std::chrono::steady_clock::time_point;
    void work(const AcquisitionSnapshot& now, const AcquisitionSnapshot& began);
    /// False when no time has passed.
    bool estimate(const AcquisitionSnapshot& now, const gpu::SinglesHistograms& earlier, Time taken,
                  gpu::ExpectedRandoms& out);

    std::unique_ptr<gpu::RandomsEstimator> estimator_;  // nullptr: it has failed
    std::shared_ptr<const gpu::SinglesHistograms> latest_;
    Time latest_taken_;
    std::vector<double> rates_;
    std::shared_ptr<const gpu::ExpectedRandoms> recent_;
    std::optional<double> average_;
};

}  // namespace petacq::daemon

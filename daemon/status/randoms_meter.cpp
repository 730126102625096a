#include "daemon/status/randoms_meter.hpp"

#include <utility>

#include "daemon/host/logging.hpp"

namespace petacq::daemon {

RandomsMeter::RandomsMeter(std::unique_ptr<gpu::RandomsEstimator> estimator)
    : estimator_(std::move(estimator)) {}

void RandomsMeter::observe(const AcquisitionSnapshot& now, const AcquisitionSnapshot& start) {
    if (!estimator_ || !now.histograms || now.histograms == latest_) return;
    try {
        update(now, start);
        latest_ = now.histograms;
        latest_taken_ = now.histograms_taken;
    } catch (const std::exception& e) {
        log_warning("the expected randoms are unknown from now on: {}", e.what());
        estimator_.reset();
        recent_.reset();
        average_.reset();
    }
}

void RandomsMeter::update(const AcquisitionSnapshot& now, const AcquisitionSnapshot& start) {
    if (latest_) {
        auto recent = std::make_shared<gpu::ExpectedRandoms>();
        if (estimate(now, *latest_, latest_taken_, *recent)) recent_ = std::move(recent);
    }
    gpu::ExpectedRandoms mean;
    if (start.histograms && estimate(now, *start.histograms, start.histograms_taken, mean)) {
        average_ = mean.total;
    } else {
        average_.reset();
    }
}

bool RandomsMeter::estimate(const AcquisitionSnapshot& now, const gpu::SinglesHistograms& earlier, Time taken,
                            gpu::ExpectedRandoms& out) {
    const double seconds = std::chrono::duration<double>(now.histograms_taken - taken).count();
    if (seconds <= 0) return false;
    const std::vector<std::uint64_t>& counts = now.histograms->per_crystal;
    rates_.resize(counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i)
        rates_[i] = static_cast<double>(counts[i] - earlier.per_crystal[i]) / seconds;
    estimator_->estimate(rates_, out);
    return true;
}

}  // namespace petacq::daemon

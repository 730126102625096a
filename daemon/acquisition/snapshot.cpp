#include "daemon/acquisition/snapshot.hpp"

#include <utility>

namespace petacq::daemon {

namespace {

constexpr std::chrono::milliseconds publish_interval{100};
constexpr std::chrono::milliseconds histogram_interval{1'000};

}  // namespace

void SnapshotBoard::publish(std::shared_ptr<AcquisitionSnapshot> snapshot) {
    const net::MutexLock lock(mutex_);
    if (latest_) static_cast<SecondsView&>(*snapshot) = *latest_;
    if (latest_ && snapshot->histograms) {
        snapshot->histograms_before = latest_->histograms;
        snapshot->histograms_before_taken = latest_->histograms_taken;
    } else if (latest_) {
        snapshot->histograms = latest_->histograms;
        snapshot->histograms_taken = latest_->histograms_taken;
        snapshot->histograms_before = latest_->histograms_before;
        snapshot->histograms_before_taken = latest_->histograms_before_taken;
    }
    latest_ = std::move(snapshot);
}

bool SnapshotBoard::publish(const SecondsView& seconds) {
    const net::MutexLock lock(mutex_);
    auto snapshot =
        latest_ ? std::make_shared<AcquisitionSnapshot>(*latest_) : std::make_shared<AcquisitionSnapshot>();
    const bool another = seconds.second != snapshot->second;
    static_cast<SecondsView&>(*snapshot) = seconds;
    latest_ = std::move(snapshot);
    return another;
}

std::shared_ptr<const AcquisitionSnapshot> SnapshotBoard::latest() const {
    const net::MutexLock lock(mutex_);
    return latest_;
}

bool SnapshotBoard::due(std::chrono::steady_clock::time_point now) {
    if (now - published_at_ < publish_interval) return false;
    published_at_ = now;
    return true;
}

bool SnapshotBoard::histograms_due(std::chrono::steady_clock::time_point now) {
    if (now - histograms_at_ < histogram_interval) return false;
    histograms_at_ = now;
    return true;
}

}  // namespace petacq::daemon

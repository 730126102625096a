// Why a thread has stopped its work.
#pragma once

#include <atomic>
#include <string>
#include <utility>

namespace petacq::daemon {

/// One thread sets it, once; any thread asks, without a lock.
class FirstFailure {
  public:
    /// REQUIRES: it has not been set.
    void set(std::string why) {
        why_ = std::move(why);
        there_.store(true, std::memory_order_release);
    }
    /// Empty while all is well.
    [[nodiscard]] std::string why() const {
        return there_.load(std::memory_order_acquire) ? why_ : std::string();
    }

  private:
    std::string why_;
    std::atomic<bool> there_{false};
};

}  // namespace petacq::daemon

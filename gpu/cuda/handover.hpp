// Passes the slices in flight from thread to thread.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "net/base/mutex.hpp"

namespace petacq::gpu::cuda {

/// Who may touch a slice, in this order: the caller of the pipeline until it submits it and once it is
/// finished; the uploader of its device, which copies its frames; the driver, which launches the stages; the
/// deliverer, which assembles its result; with a gamma window, the joiner, which finds its triples.
enum class Owner : std::uint8_t { caller, uploader, driver, deliverer, joiner };

/// Slices are numbered in order of submission; `depth` may be in flight, each in its place of the ring, which
/// stands for its number. An owner sees all that earlier owners have done before they passed the slice on.
class Handover {
  public:
    explicit Handover(std::size_t depth) : owners_(depth, Owner::caller) {}

    /// Gives a slice to its next owner.
    void pass(std::uint64_t slice, Owner to) {
        {
            const net::MutexLock lock(mutex_);
            owners_[slice % owners_.size()] = to;
        }
        passed_to(to).notify_all();
    }
    [[nodiscard]] bool has(Owner owner, std::uint64_t slice) {
        const net::MutexLock lock(mutex_);
        return owners_[slice % owners_.size()] == owner && !stop_;
    }
    /// Waits for a slice. False: the pipeline stops or has failed.
    [[nodiscard]] bool wait(Owner owner, std::uint64_t slice) {
        net::MutexLock lock(mutex_);
        while (owners_[slice % owners_.size()] != owner && !stop_)
            passed_to(owner).wait(lock.native());
        return !stop_;
    }
    /// Ends all waiting. `failure`: why, if the pipeline has failed.
    void stop(const std::string& failure = {}) {
        {
            const net::MutexLock lock(mutex_);
            stop_ = true;
            if (failure_.empty()) failure_ = failure;
        }
        for (std::condition_variable& passed : passed_)
            passed.notify_all();
    }
    /// Throws std::runtime_error with the first failure.
    void throw_if_failed() {
        const net::MutexLock lock(mutex_);
        if (!failure_.empty()) throw std::runtime_error(failure_);
    }

  private:
    std::condition_variable& passed_to(Owner owner) { return passed_[static_cast<std::size_t>(owner)]; }

    net::Mutex mutex_;
    std::vector<Owner> owners_ PETACQ_GUARDED_BY(mutex_);  // [place]
    std::string failure_ PETACQ_GUARDED_BY(mutex_);
    bool stop_ PETACQ_GUARDED_BY(mutex_) = false;
    std::array<std::condition_variable, 5> passed_;  // [Owner]
};

}  // namespace petacq::gpu::cuda

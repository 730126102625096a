// The sums of an interval while it is being searched: one set on the device is added to while the other one,
// of the interval before, is copied down.
#pragma once

#include <utility>

#include "gpu/cuda/base/copies.hpp"
#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/base/sums.hpp"
#include "gpu/interval_sums.hpp"

namespace petacq::gpu::cuda {

class DeviceSums {
  public:
    DeviceSums(const config::Geometry& geometry, Memory& memory) {
        for (Set& set : sets_)
            set.sums =
                SumArrays::make(geometry, [&](std::size_t bytes) { return memory.device<std::byte>(bytes); });
    }

    /// Forgets the interval.
    void reset() {
        begins_ = true;
        counts_ = {};
    }
    /// Before a slice is searched on `stream`: clears the other set if an interval begins with it.
    void start_slice(cudaStream_t stream) {
        if (!std::exchange(begins_, false)) return;
        which_ = 1 - which_;
        order_after(sets_[which_].read, stream);
        clear(arrays().memory, arrays().bytes, stream);
    }
    /// What the search adds to: the interval so far, without the counts.
    [[nodiscard]] const SumArrays& arrays() const { return sets_[which_].sums; }
    /// Ends the interval: copies its sums to the host.
    void copy_to(const SumArrays& host, cudaStream_t stream) {
        to_host(host.memory, arrays().memory, arrays().bytes, stream);
        sets_[which_].read.record(stream);
        begins_ = true;
    }
    /// The counts, which stay on the host.
    void add(const SingleCounts& counts) { counts_ += counts; }
    SingleCounts take_counts() { return std::exchange(counts_, {}); }

  private:
    struct Set {
        SumArrays sums;
        Event read;  // not to be cleared before
    };
    Set sets_[2];
    int which_ = 0;
    bool begins_ = true;  // with the next slice
    SingleCounts counts_;
};

}  // namespace petacq::gpu::cuda

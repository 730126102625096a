// Histograms that are exact as of a slice although threads are ahead of it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/cpu/convert.hpp"
#include "net/base/mutex.hpp"

namespace petacq::gpu {

/// The histograms that one thread fills: the total of the slices that have been collected, and local
/// histograms for each slice that the thread has worked on and that has not.
class ThreadHistograms {
  public:
    explicit ThreadHistograms(const config::Geometry& geometry)
        : geometry_(geometry), total_(make_histograms(geometry)) {}

    /// Where the thread counts for a slice. Slices have numbers; those below `collected` have been collected.
    LocalHistograms& of_slice(std::uint64_t slice, std::uint64_t collected);
    /// Adds what the thread counted for the slices below `collected`. Any thread may call it.
    void add_to(SinglesHistograms& sum, std::uint64_t collected);

  private:
    struct OfSlice {
        std::uint64_t slice;
        LocalHistograms histograms;
    };
    const config::Geometry geometry_;
    net::Mutex mutex_;
    std::vector<std::unique_ptr<OfSlice>> slices_ PETACQ_GUARDED_BY(mutex_);
    SinglesHistograms total_ PETACQ_GUARDED_BY(mutex_);
};

}  // namespace petacq::gpu

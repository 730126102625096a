#include "gpu/cpu/thread_histograms.hpp"

namespace petacq::gpu {

LocalHistograms& ThreadHistograms::of_slice(std::uint64_t slice, std::uint64_t collected) {
    const net::MutexLock lock(mutex_);
    OfSlice* free = nullptr;
    for (const auto& one : slices_) {
        if (one->slice == slice) return one->histograms;
        if (one->slice < collected) free = one.get();
    }
    if (free == nullptr) {
        slices_.push_back(std::make_unique<OfSlice>(OfSlice{slice, LocalHistograms(geometry_)}));
        return slices_.back()->histograms;
    }
    free->histograms.flush_into(total_);
    free->slice = slice;
    return free->histograms;
}

void ThreadHistograms::add_to(SinglesHistograms& sum, std::uint64_t collected) {
    const net::MutexLock lock(mutex_);
    for (const auto& one : slices_) {
        if (one->slice < collected) one->histograms.flush_into(total_);
    }
    sum += total_;
}

}  // namespace petacq::gpu

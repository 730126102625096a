#include "gpu/cpu/thread_histograms.hpp"

namespace petacq::gpu {

LocalHistograms& ThreadHistograms::of_slice(std::uint64_t slice, std::uint64_t collected) {
    const net::MutexLock lock(mutex_);
    Entry* free = nullptr;
    for (const auto& entry : entries_) {
        if (entry->slice == slice) return entry->histograms;
        if (entry->slice < collected) free = entry.get();
    }
    if (free == nullptr) {
        entries_.push_back(std::make_unique<Entry>(Entry{slice, LocalHistograms(geometry_)}));
        return entries_.back()->histograms;
    }
    free->histograms.flush_into(total_);
    free->slice = slice;
    return free->histograms;
}

void ThreadHistograms::add_to(SinglesHistograms& sum, std::uint64_t collected) {
    const net::MutexLock lock(mutex_);
    for (const auto& entry : entries_) {
        if (entry->slice < collected) entry->histograms.flush_into(total_);
    }
    sum += total_;
}

}  // namespace petacq::gpu

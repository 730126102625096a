// The search for coincidences on the first device, slice after slice, and the way of its results to the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/coincidence/device_sums.hpp"
#include "gpu/cuda/coincidence/search_arguments.hpp"
#include "gpu/cuda/slice/device_slice.hpp"

namespace petacq::gpu::cuda {

/// Between slices it keeps the carry: ordered singles below the last watermark whose windows reach beyond it.
/// For each slice: carry_over(), then search() when the new singles are in their place, then, when the totals
/// are on the host, download() and take_totals().
class CoincidenceSearch {
  public:
    /// `scratch_bytes`: at least so many in scratch(). If `memory` is a plan, it cannot be used.
    CoincidenceSearch(const PipelineOptions& options, Memory& memory, std::size_t scratch_bytes);

    /// Forgets the carry and the sums of the interval.
    void reset();
    /// Puts the carry in front of the ready singles of a slice, whose number must be on the host, and starts
    /// the sums of an interval if one begins. Throws std::runtime_error for more singles than there is room
    /// for.
    void carry_over(const DeviceSlice& slice, cudaStream_t stream);
    /// Where the ready singles belong, in total order.
    [[nodiscard]] Single* new_singles() const { return ordered_[which_] + carried_; }
    /// Memory that the search does not use before search().
    [[nodiscard]] void* scratch() const { return scratch_; }
    /// Finds the coincidences, and packs them into the slice if they fit. Ends with a copy of the totals to
    /// the host.
    void search(DeviceSlice& slice, cudaStream_t stream);
    /// Starts copying the results to the host, on `down`; the search was on `compute`. Slices with more
    /// records than there is room for take longer: they come in parts, which this call awaits and puts into
    /// order.
    void download(DeviceSlice& slice, cudaStream_t compute, const Stream& down);
    /// Reads the totals: counts and pending singles of the slice without the gammas below the watermark, the
    /// time of the newest, the counts of the interval that it ends, and the carry. Throws
    /// std::runtime_error when more singles are pending than allowed.
    void take_totals(DeviceSlice& slice);

  private:
    [[nodiscard]] SearchArguments arguments(const DeviceSlice& slice) const;
    void download_in_parts(DeviceSlice& slice, cudaStream_t compute, const Stream& down);
    void download_kind(const DeviceSlice& slice, Kind kind, std::uint64_t total,
                       std::vector<Coincidence>& all, cudaStream_t compute, const Stream& down);

    const CoincidenceRules rules_;
    const bool emit_singles_;
    const std::uint64_t max_pending_;
    const std::uint64_t room_;  // singles
    SearchArguments base_;      // what all slices have in common
    void* scratch_ = nullptr;   // the lists lie in it
    Coincidence* records_ = nullptr;
    Coincidence* prompts_ = nullptr;
    Coincidence* delayeds_ = nullptr;
    DeviceSums sums_;
    Event part_;
    // Used by download_in_parts(); members to keep their memory.
    std::vector<Coincidence> many_prompts_;
    std::vector<Coincidence> many_delayeds_;

    Single* ordered_[2] = {nullptr, nullptr};
    Event read_[2];              // they are not to be overwritten before
    int which_ = 0;              // the singles of the slice searched last
    std::uint32_t carried_ = 0;  // in front of its ready singles
    std::uint32_t count_ = 0;    // with them
    std::uint32_t begin_ = 0;    // the first of them that is carried over
    std::uint32_t taken_ = 0;    // carried singles that already belong to a group
    std::uint64_t horizon_ = 0;  // of the slice searched last
    std::uint64_t newest_ = 0;   // time of the newest accepted single or gamma
};

}  // namespace petacq::gpu::cuda

// The singles and gammas above the watermark, which wait on the first device from slice to slice, and the
// conversion that distributes them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/base/single_arrays.hpp"
#include "gpu/cuda/convert/converter.hpp"
#include "gpu/cuda/slice/device_slice.hpp"

namespace petacq::gpu::cuda {

/// For each slice, convert() or join(), then take_totals() when the totals are on the host.
class WaitingSingles {
  public:
    /// `converter`: of the first device. Takes memory from there; if that is a plan, it cannot be used.
    WaitingSingles(const PipelineOptions& options, Converter& converter);

    /// Forgets the singles that wait.
    void reset() { waiting_count_ = 0; }
    /// Converts the frames of the slice, which must have arrived, and distributes them and the singles that
    /// wait to ready and waiting. Ends with a copy of the totals to the host.
    void convert(DeviceSlice& slice, cudaStream_t stream) {
        converter_.convert(slice, output(), waiting(), stream);
    }
    /// The same for a slice that was converted ahead, whose totals must be on the host. Records `joined` when
    /// the new totals have been copied, and fetches the singles of the other device after that.
    void join(DeviceSlice& slice, const Event& joined, cudaStream_t stream);
    /// Throws std::runtime_error when more singles wait than allowed.
    void take_totals(const DeviceSlice& slice);
    /// The ready singles of the slice converted last. Its ready gammas fill the room for singles from the
    /// end. Both are in any order, and have times from DeviceSlice::late_below on.
    [[nodiscard]] const SingleArrays& ready() const { return ready_; }

  private:
    [[nodiscard]] CountedSingles waiting() const { return {waiting_[which_], waiting_count_}; }
    [[nodiscard]] ConvertOutput output() const { return {ready_, room_, waiting_[1 - which_], tags_}; }

    const std::uint64_t max_waiting_;
    const std::uint64_t room_;
    Converter& converter_;
    SingleArrays ready_;
    SingleArrays waiting_[2];  // those that the last slice left, and where the next one puts them
    TagCell* tags_ = nullptr;  // of the slice converted last
    int which_ = 0;
    std::uint32_t waiting_count_ = 0;
};

}  // namespace petacq::gpu::cuda

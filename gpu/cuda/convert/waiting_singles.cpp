#include "gpu/cuda/convert/waiting_singles.hpp"

#include <fmt/format.h>
#include <nvtx3/nvtx3.hpp>
#include <stdexcept>

namespace petacq::gpu::cuda {

WaitingSingles::WaitingSingles(const PipelineOptions& o, Converter& converter)
    : max_waiting_(o.max_pending_singles), room_(room_for_singles(o)), converter_(converter) {
    Memory& memory = converter.memory();
    for (SingleArrays* const arrays : {&ready_, &waiting_[0], &waiting_[1]})
        *arrays = SingleArrays::of(memory, room_);
    if (o.input == Input::frames) tags_ = memory.device<TagCell>(o.max_slice_frames);
}

void WaitingSingles::join(DeviceSlice& slice, const Event& joined, cudaStream_t stream) {
    const nvtx3::scoped_range range{"join"};
    const SliceSingles& other = slice.singles;
    const std::uint32_t ready = other.host_totals->ready;
    const std::uint32_t pending = other.host_totals->pending;
    const std::uint32_t gammas = other.host_totals->gammas;
    const ConvertOutput to = output();
    converter_.split(slice, to, waiting(), stream);
    joined.record(stream);
    const auto fetch = [&](std::uint64_t* here, const std::uint64_t* there, std::uint32_t count) {
        if (count == 0) return;
        check(cudaMemcpyPeerAsync(here, converter_.device(), there, other.device,
                                  count * sizeof(std::uint64_t), stream),
              "cudaMemcpyPeerAsync", "copying singles from another device");
    };
    const auto fetch_singles = [&](const SingleArrays& here, const SingleArrays& there, std::uint32_t count) {
        fetch(here.time, there.time, count);
        fetch(here.value, there.value, count);
    };
    fetch_singles(to.ready, other.ahead.ready, ready);
    fetch_singles(to.ready.from(to.room - gammas), other.ahead.ready.from(other.ahead.room - gammas), gammas);
    fetch_singles(to.pending, other.ahead.pending, pending);
}

void WaitingSingles::take_totals(const DeviceSlice& slice) {
    waiting_count_ = slice.singles.host_totals->pending;
    which_ = 1 - which_;
    if (waiting_count_ > max_waiting_) {
        throw std::runtime_error(
            fmt::format("{} singles wait for the watermark: at most {} (max_pending_singles)", waiting_count_,
                        max_waiting_));
    }
}

}  // namespace petacq::gpu::cuda

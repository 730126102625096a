#include "gpu/cuda/triples/ordered_gammas.hpp"

#include "gpu/cuda/base/copies.hpp"

namespace petacq::gpu::cuda {

OrderedGammas::OrderedGammas(const PipelineOptions& o, Memory& memory) {
    if (!o.rules.gammas) return;
    for (Single*& gammas : gammas_)
        gammas = memory.device<Single>(room_for_singles(o));
}

void OrderedGammas::start(cudaStream_t stream) {
    which_ = 1 - which_;
    if (gammas() != nullptr) order_after(read_[which_], stream);
}

void OrderedGammas::download(DeviceSlice& slice, cudaStream_t down) {
    SliceGammas& to = slice.gammas;
    const std::uint32_t count = slice.singles.host_totals->gammas;
    to.count = count;
    to.many.resize(count <= to.room ? 0 : SliceGammas::lead + count);
    if (count == 0) return;
    to_host(to.first(), gammas(), count, down);
    read_[which_].record(down);
}

}  // namespace petacq::gpu::cuda

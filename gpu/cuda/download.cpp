#include "gpu/cuda/download.hpp"

#include <algorithm>
#include <nvtx3/nvtx3.hpp>

#include "gpu/cuda/base/copies.hpp"
#include "gpu/record_order.hpp"

namespace petacq::gpu::cuda {

void Downloader::download(Slot& slot, Stages& stages, cudaStream_t compute, const Stream& down) {
    const nvtx3::scoped_range range{"download"};
    const FindTotals& t = *slot.host_found;
    slot.many_records.clear();
    slot.record_count = 0;
    if (t.prompts + t.delayeds <= slot.record_room) {
        slot.record_count = static_cast<std::uint32_t>(t.prompts + t.delayeds);
        to_host(slot.host_records, slot.records, slot.record_count * slot.packing.record_bytes(), down);
    } else {
        fetch_many(slot, stages, compute, down);
    }
    if (slot.ends_interval) {
        to_host(slot.host_sums.memory, stages.sums().memory, stages.sums().bytes, down);
        stages.sums_read(down);
    }
    slot.many_singles.clear();
    slot.single_count = 0;
    if (!singles_wanted_) return;
    if (t.decided <= slot.single_room) {
        slot.single_count = t.decided;
        to_host(slot.host_singles, stages.singles(), t.decided, down);
    } else {
        slot.many_singles.resize(t.decided);
        to_host(slot.many_singles.data(), stages.singles(), t.decided, down);
    }
    stages.singles_read(down);
}

void Downloader::fetch_many(Slot& slot, const Stages& stages, cudaStream_t compute, const Stream& down) {
    const FindTotals& t = *slot.host_found;
    fetch_kind(Kind::prompt, t.prompts, many_prompts_, slot, stages, compute, down);
    fetch_kind(Kind::delayed, t.delayeds, many_delayeds_, slot, stages, compute, down);
    slot.many_records.resize(many_prompts_.size() + many_delayeds_.size());
    std::merge(many_prompts_.begin(), many_prompts_.end(), many_delayeds_.begin(), many_delayeds_.end(),
               slot.many_records.begin(),
               [](const Coincidence& a, const Coincidence& b) { return before(a, b); });
}

void Downloader::fetch_kind(Kind kind, std::uint64_t total, std::vector<Coincidence>& all, const Slot& slot,
                            const Stages& stages, cudaStream_t compute, const Stream& down) {
    all.resize(total);
    for (std::uint64_t low = 0; low < total; low += slot.record_room) {
        stages.emit_part(slot, kind, low, compute);
        part_.record(compute);
        down.wait_for(part_);
        to_host(all.data() + low, stages.records(), std::min<std::uint64_t>(total - low, slot.record_room),
                down);
        check(cudaStreamSynchronize(down), "cudaStreamSynchronize", "copying results to the host");
    }
    order_equal_times(all);
}

}  // namespace petacq::gpu::cuda

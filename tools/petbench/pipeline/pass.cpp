#include "tools/petbench/pipeline/pass.hpp"

#include "tools/petbench/base/measure.hpp"

namespace petacq::bench {

namespace {

constexpr gpu::TickRange always{0, UINT64_MAX};

}  // namespace

std::vector<gpu::Slice> cut(std::span<const gpu::FrameSpan> spans, std::span<const std::uint64_t> watermarks,
                            std::size_t slice_frames) {
    std::vector<gpu::Slice> slices;
    std::size_t from = 0;
    std::size_t frames = 0;
    for (std::size_t i = 0; i < spans.size(); ++i) {
        frames += spans[i].count;
        const bool last = i + 1 == spans.size();
        if (!last && frames + spans[i + 1].count <= slice_frames) continue;
        gpu::Slice slice;
        slice.id = slices.size();
        slice.spans = spans.subspan(from, i + 1 - from);
        slice.watermark = last ? UINT64_MAX : watermarks[i];
        if (last) slice.close_at = UINT64_MAX;
        slices.push_back(slice);
        from = i + 1;
        frames = 0;
    }
    return slices;
}

Pass run_pass(const std::vector<gpu::Slice>& slices, gpu::Pipeline& pipeline, bool spectra) {
    Pass pass;
    gpu::SliceResult result;
    pipeline.reset();
    std::size_t waiting = 0;
    const auto collect = [&] {
        pipeline.collect(result, true);
        pass.frames += result.frames;
        pass.singles += result.counts;
        pass.gammas += result.gamma_counts;
        --waiting;
    };
    pass.seconds = seconds_of([&] {
        for (gpu::Slice slice : slices) {
            if (spectra) slice.spectra = always;
            if (waiting == pipeline.depth()) collect();
            pipeline.submit(slice);
            ++waiting;
        }
        while (waiting > 0)
            collect();
    });
    return pass;
}

}  // namespace petacq::bench

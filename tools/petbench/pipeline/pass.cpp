#include "tools/petbench/pipeline/pass.hpp"

#include "tools/petbench/base/measure.hpp"

namespace petacq::bench {

std::vector<Cut> cut(const Stream& stream, std::size_t slice_frames) {
    std::vector<Cut> cuts;
    std::size_t from = 0;
    std::size_t frames = 0;
    for (std::size_t i = 0; i < stream.spans.size(); ++i) {
        frames += stream.spans[i].count;
        if (frames >= slice_frames || i + 1 == stream.spans.size()) {
            cuts.push_back({from, i + 1});
            from = i + 1;
            frames = 0;
        }
    }
    return cuts;
}

Pass run_pass(const Stream& stream, const std::vector<Cut>& cuts, gpu::Pipeline& pipeline, bool spectra) {
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
        for (std::size_t i = 0; i < cuts.size(); ++i) {
            gpu::Slice slice;
            slice.id = i;
            slice.spans = std::span(stream.spans).subspan(cuts[i].from, cuts[i].to - cuts[i].from);
            slice.watermark = stream.watermarks[cuts[i].to - 1];
            if (i + 1 == cuts.size()) slice.close_at = UINT64_MAX;
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

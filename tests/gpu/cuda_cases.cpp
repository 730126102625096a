#include "tests/gpu/cuda_cases.hpp"

#include "tests/catch.hpp"

#ifdef PETACQ_CUDA
#include "gpu/cuda/cuda_pipeline.hpp"
#endif

namespace petacq::test {

bool cuda_usable() {
#ifdef PETACQ_CUDA
    if (const auto reason = gpu::cuda_unusable_reason()) {
        WARN("skipped: " << *reason);
        return false;
    }
    return true;
#else
    WARN("skipped: CUDA: not built");
    return false;
#endif
}

Case open_case(Rng& rng) {
    Case c;
    c.setup = random_setup(rng);
    c.options.geometry = c.setup.geometry;
    c.options.head_marker = c.setup.head_marker;
    c.options.tail_marker = c.setup.tail_marker;
    c.options.energy.filter = false;
    c.options.rules.window = cuda_tau;
    c.options.rules.policy = gpu::MultiplesPolicy::take_winner_of_goods;
    c.options.emit_singles = true;
    c.options.threads = 2;
    return c;
}

Frames frames_at(const Case& c, std::size_t count, const std::function<std::uint64_t(std::size_t)>& time_of,
                 Rng& rng, std::uint16_t lowest_adc, std::uint16_t highest_adc) {
    Frames frames;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t time = (std::uint64_t{1} << 40) + time_of(i);
        const auto crystal = rng.between(0U, c.options.geometry.crystal_count() - 1);
        frames.raw.push_back(
            frame_for(c.setup, {time, crystal, rng.between<std::uint16_t>(lowest_adc, highest_adc)}, rng)
                .value());
        frames.times.push_back(time);
    }
    return frames;
}

Output feed(gpu::Pipeline& pipeline, const std::vector<gpu::Slice>& slices) {
    Output out;
    gpu::SliceResult result;
    std::size_t waiting = 0;
    const auto collect = [&] {
        REQUIRE(pipeline.collect(result, true));
        out.coincidences.insert(out.coincidences.end(), result.coincidences.begin(),
                                result.coincidences.end());
        out.singles.insert(out.singles.end(), result.singles.begin(), result.singles.end());
        out.counts += result.counts;
        out.frames += result.frames;
        --waiting;
    };
    for (const gpu::Slice& slice : slices) {
        if (waiting == pipeline.depth()) collect();
        pipeline.submit(slice);
        ++waiting;
    }
    while (waiting > 0)
        collect();
    return out;
}

Output feed(gpu::Pipeline& pipeline, const Frames& frames, std::size_t slice_frames) {
    std::vector<gpu::FrameSpan> spans;
    std::vector<gpu::Slice> slices;
    spans.reserve(frames.raw.size() / slice_frames + 1);
    for (std::size_t from = 0; from < frames.raw.size(); from += slice_frames) {
        const std::size_t end = std::min(frames.raw.size(), from + slice_frames);
        spans.push_back(span_of(frames.raw, from, end - from));
        gpu::Slice slice;
        slice.spans = {&spans.back(), 1};
        const bool last = end == frames.raw.size();
        slice.watermark = last ? UINT64_MAX : frames.times[end];
        if (last) slice.close_at = UINT64_MAX;
        slices.push_back(slice);
    }
    return feed(pipeline, slices);
}

}  // namespace petacq::test

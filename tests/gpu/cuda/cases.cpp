#include "tests/gpu/cuda/cases.hpp"

#include <utility>

#include "tests/support/catch.hpp"

#ifdef PETACQ_CUDA
#include "gpu/cuda/cuda_pipeline.hpp"
#include "tests/gpu/cuda_usable.hpp"
#endif

namespace petacq::test {

namespace {

Case case_of(Setup setup) {
    Case c;
    c.setup = std::move(setup);
    c.options.geometry = c.setup.geometry;
    c.options.head_marker = c.setup.head_marker;
    c.options.tail_marker = c.setup.tail_marker;
    c.options.energy.filter = false;
    c.options.rules.window = tau;
    c.options.rules.policy = gpu::MultiplesPolicy::take_winner_of_goods;
    c.options.emit_singles = true;
    c.options.threads = 2;
    return c;
}

}  // namespace

Case open_case(Rng& rng) {
    return case_of(random_setup(rng));
}

Case open_long_case(Rng& rng) {
    return case_of(random_long_setup(rng));
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
    // One slice, then two, then one.
    const auto ends_interval = [&](std::size_t i) { return i % 3 != 1 || i + 1 == slices.size(); };
    std::size_t collected = 0;
    const auto collect = [&] {
        REQUIRE(pipeline.collect(result, true));
        out.coincidences.insert(out.coincidences.end(), result.coincidences.begin(),
                                result.coincidences.end());
        out.singles.insert(out.singles.end(), result.singles.begin(), result.singles.end());
        out.counts += result.counts;
        out.frames += result.frames;
        if (ends_interval(collected++)) out.sums.push_back(result.sums);
        --waiting;
    };
    for (std::size_t i = 0; i < slices.size(); ++i) {
        if (waiting == pipeline.depth()) collect();
        gpu::Slice slice = slices[i];
        slice.ends_interval = ends_interval(i);
        pipeline.submit(slice);
        ++waiting;
    }
    while (waiting > 0)
        collect();
    return out;
}

#ifdef PETACQ_CUDA
Output check_against_cpu(const Case& c, const std::vector<gpu::Slice>& slices) {
    Output expected = feed(*gpu::make_cpu_pipeline(c.options, c.setup.calibration), slices);
    for (const std::vector<std::uint32_t>& devices : {std::vector<std::uint32_t>(), two_devices()}) {
        gpu::PipelineOptions options = c.options;
        options.devices = devices;
        const Output output = feed(*gpu::make_cuda_pipeline(options, c.setup.calibration), slices);
        INFO((devices.empty() ? "one device" : "two devices"));
        CHECK(output.counts == expected.counts);
        CHECK(output.frames == expected.frames);
        CHECK((output.sums == expected.sums));
        CHECK(same_bytes(output.singles, expected.singles));
        CHECK(same_bytes(output.coincidences, expected.coincidences));
    }
    return expected;
}

Output check_against_cpu(const Case& c, const Frames& frames, std::size_t slice_frames) {
    const std::size_t count = frames.raw.size();
    std::vector<gpu::FrameSpan> spans;
    std::vector<gpu::Slice> slices;
    spans.reserve(count / slice_frames + 1);  // the slices point into it
    for (std::size_t from = 0; from < count; from += slice_frames) {
        const std::size_t end = std::min(count, from + slice_frames);
        spans.push_back(span_of(frames.raw, from, end - from));
        const std::span one(&spans.back(), 1);
        slices.push_back(end == count ? last_slice_of(one) : slice_of(one, frames.times[end]));
    }
    return check_against_cpu(c, slices);
}
#endif

}  // namespace petacq::test

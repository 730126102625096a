#include "tools/petbench/pipeline_cuda.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "gpu/cuda/cuda_pipeline.hpp"
#include "gpu/cuda/pinned_memory.hpp"
#include "gpu/cuda/randoms.hpp"
#include "gpu/cuda/stages.hpp"
#include "net/wire.hpp"
#include "tools/petbench/cuda_timeline.hpp"
#include "tools/petbench/frames.hpp"
#include "tools/petbench/suites.hpp"

namespace petacq::bench {

namespace {

using gpu::cuda::check;

constexpr std::size_t block_frames = 5U << 18;  // not a multiple of any slice

/// Frames as received: spans with a header before each, in one piece of pinned memory. Blocks of the same
/// frames follow each other in time.
struct Input {
    std::unique_ptr<net::MemorySource> memory = gpu::make_pinned_memory();
    std::byte* data = nullptr;
    std::vector<gpu::FrameSpan> spans;
    std::vector<std::uint64_t> watermarks;  // [span]
    std::size_t frames = 0;
    std::size_t bytes = 0;
};

void set_time(std::byte* frame, std::uint64_t time) {
    const std::uint64_t swapped = net::swap_bytes(time);
    std::memcpy(frame + 2, &swapped, sizeof swapped);
}

Input make_input(const config::Scanner& scanner, double rate, std::size_t frames) {
    StreamOptions options;
    options.frames = block_frames;
    options.singles_per_s = rate;
    const Stream stream = make_stream(scanner, options);
    std::uint64_t latest = 0;
    for (std::size_t i = 0; i < block_frames; ++i)
        latest = std::max(latest, net::frame_time(stream.bytes.data() + i * net::frame_bytes));

    Input input;
    const std::size_t blocks = (frames + block_frames - 1) / block_frames;
    const std::size_t block_bytes = block_frames * net::frame_bytes + stream.spans.size() * net::header_bytes;
    input.frames = blocks * block_frames;
    input.bytes = blocks * block_bytes;
    input.data = input.memory->allocate(input.bytes);
    input.spans.resize(blocks * stream.spans.size());
    input.watermarks.resize(input.spans.size());
    const auto fill = [&](std::size_t block) {
        std::byte* to = input.data + block * block_bytes;
        const std::uint64_t shift = block * latest;
        const std::uint64_t next = 1'000'000 + (block + 1) * latest;
        for (std::size_t i = 0; i < stream.spans.size(); ++i) {
            const gpu::FrameSpan& from = stream.spans[i];
            to += net::header_bytes;
            gpu::FrameSpan& span = input.spans[block * stream.spans.size() + i];
            span = from;
            span.frames = to;
            for (std::uint32_t k = 0; k < from.count; ++k, to += net::frame_bytes) {
                const std::byte* frame = from.frames + std::size_t{k} * net::frame_bytes;
                std::memcpy(to, frame, net::frame_bytes);
                set_time(to, net::frame_time(frame) + shift);
            }
            // The next block begins a little before the end of this one.
            const std::uint64_t low = std::min(stream.watermarks[i], latest) + shift;
            input.watermarks[block * stream.spans.size() + i] = std::min(low, next);
        }
    };
    std::vector<std::thread> threads;
    const std::size_t workers = std::max(1U, std::thread::hardware_concurrency());
    for (std::size_t w = 0; w < workers; ++w) {
        threads.emplace_back([&, w] {
            for (std::size_t block = w; block < blocks; block += workers)
                fill(block);
        });
    }
    for (std::thread& t : threads)
        t.join();
    return input;
}

double milliseconds_between(cudaEvent_t from, cudaEvent_t to) {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, from, to), "cudaEventElapsedTime", "timing");
    return ms;
}

/// Bytes per second of copies of `bytes` each, back to back.
double copy_rate(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, int repeat) {
    const gpu::cuda::Stream stream;
    const gpu::cuda::Event start(cudaEventDefault);
    const gpu::cuda::Event end(cudaEventDefault);
    const int copies = std::max(4, static_cast<int>((std::size_t{1} << 30) / bytes));
    std::vector<double> rates;
    for (int r = 0; r < repeat + 1; ++r) {
        start.record(stream);
        for (int i = 0; i < copies; ++i)
            check(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync", "timing copies");
        end.record(stream);
        end.wait("timing copies");
        if (r > 0)
            rates.push_back(static_cast<double>(bytes) * copies / milliseconds_between(start, end) * 1e3);
    }
    return median(rates);
}

/// Bytes per second of one copy of the whole input, in pieces, by way of one piece of the device's memory.
double input_rate(const Input& input, void* to, std::size_t piece, int repeat) {
    const gpu::cuda::Stream stream;
    const gpu::cuda::Event start(cudaEventDefault);
    const gpu::cuda::Event end(cudaEventDefault);
    const std::size_t pieces = input.bytes / piece;
    std::vector<double> rates;
    for (int r = 0; r < repeat + 1; ++r) {
        start.record(stream);
        for (std::size_t i = 0; i < pieces; ++i) {
            check(cudaMemcpyAsync(to, input.data + i * piece, piece, cudaMemcpyHostToDevice, stream),
                  "cudaMemcpyAsync", "timing copies");
        }
        end.record(stream);
        end.wait("timing copies");
        if (r > 0)
            rates.push_back(static_cast<double>(pieces * piece) / milliseconds_between(start, end) * 1e3);
    }
    return median(rates);
}

struct Whole {
    double rate = 0;
    double slowest = 0;
    double fastest = 0;
    gpu::FrameCounts frames;
    gpu::SingleCounts singles;
};

Whole run_whole(const Input& input, gpu::Pipeline& pipeline, std::size_t slice_frames, int repeat,
                const std::function<void()>& pass_begins) {
    Whole whole;
    std::vector<double> rates;
    gpu::SliceResult result;
    for (int r = 0; r < repeat + 1; ++r) {
        pipeline.reset();
        whole.frames = {};
        whole.singles = {};
        std::size_t waiting = 0;
        pass_begins();
        const auto collect = [&] {
            pipeline.collect(result, true);
            whole.frames += result.frames;
            whole.singles += result.counts;
            --waiting;
        };
        const double seconds = seconds_of([&] {
            std::size_t from = 0;
            std::size_t count = 0;
            for (std::size_t i = 0; i < input.spans.size(); ++i) {
                count += input.spans[i].count;
                const bool last = i + 1 == input.spans.size();
                if (!last && count + input.spans[i + 1].count <= slice_frames) continue;
                gpu::Slice slice;
                slice.spans = std::span(input.spans).subspan(from, i + 1 - from);
                slice.watermark = last ? UINT64_MAX : input.watermarks[i];
                if (last) slice.close_at = UINT64_MAX;
                if (waiting == pipeline.depth()) collect();
                pipeline.submit(slice);
                ++waiting;
                from = i + 1;
                count = 0;
            }
            while (waiting > 0)
                collect();
        });
        if (r > 0) rates.push_back(static_cast<double>(whole.frames.received) / seconds);
    }
    whole.rate = median(rates);
    whole.slowest = *std::min_element(rates.begin(), rates.end());
    whole.fastest = *std::max_element(rates.begin(), rates.end());
    return whole;
}

struct StageTimes {
    double convert = 0, order = 0, find = 0, whole = 0;  // ms
};

/// One slice over and over, its frames on the device already.
StageTimes run_stages(const config::Calibration& calibration, const gpu::PipelineOptions& options,
                      std::span<const gpu::FrameSpan> spans, int repeat, gpu::SingleCounts& counts) {
    const gpu::OwnedTables tables(options, calibration);
    gpu::cuda::Memory memory(gpu::cuda::Memory::Purpose::use);
    gpu::cuda::Stages stages(options, tables, memory);
    gpu::cuda::Slot slot(options, memory);
    const gpu::cuda::Stream stream;
    upload(spans, slot, stream);
    slot.watermark = UINT64_MAX;
    slot.close_at = UINT64_MAX;
    std::vector<std::unique_ptr<gpu::cuda::Event>> at;
    for (int i = 0; i < 8; ++i)
        at.push_back(std::make_unique<gpu::cuda::Event>(static_cast<unsigned>(cudaEventDefault)));
    std::vector<double> convert, order, find, whole;
    for (int r = 0; r < repeat + 2; ++r) {
        bool again = false;
        stages.reset();
        check(cudaStreamSynchronize(stream), "cudaStreamSynchronize", "timing");
        const double seconds = seconds_of([&] {
            at[0]->record(stream);
            stages.convert(slot, stream);
            at[1]->record(stream);
            at[1]->wait("timing conversion");
            stages.converted(slot);
            at[2]->record(stream);
            stages.order(slot, stream);
            at[3]->record(stream);
            stages.find(slot, stream);
            at[4]->record(stream);
            at[4]->wait("timing coincidences");
            again = gpu::cuda::Stages::has_long_runs(slot);
            if (again) {
                at[5]->record(stream);
                stages.order_long_runs(slot, stream);
                at[6]->record(stream);
                stages.find(slot, stream);
                at[7]->record(stream);
                at[7]->wait("timing coincidences");
            }
            stages.found(slot);
        });
        if (r < 2) continue;
        const auto between = [&](int from, int to) { return milliseconds_between(*at[from], *at[to]); };
        convert.push_back(between(0, 1));
        order.push_back(between(2, 3) + (again ? between(5, 6) : 0));
        find.push_back(between(3, 4) + (again ? between(6, 7) : 0));
        whole.push_back(seconds * 1e3);
    }
    counts = slot.result.counts;
    return {median(convert), median(order), median(find), median(whole)};
}

void print_stages(const char* name, const StageTimes& t, std::size_t frames, const gpu::SingleCounts& c,
                  double poisson) {
    const auto rate = [&](double ms) { return static_cast<double>(frames) / ms / 1e6; };
    std::printf("%-26s %7.3f %7.3f %7.3f %7.3f   %6.2f %6.2f %6.2f %6.2f  %5.2fx  %llu prompts\n", name,
                t.convert, t.order, t.find, t.whole, rate(t.convert), rate(t.order), rate(t.find),
                rate(t.whole), t.whole / poisson, static_cast<unsigned long long>(c.prompts));
}

/// Milliseconds that the expected randoms take.
double randoms_ms(gpu::RandomsEstimator& estimator, const config::Geometry& geometry, int repeat) {
    std::vector<double> rates(geometry.crystal_count());
    for (std::size_t i = 0; i < rates.size(); ++i)
        rates[i] = 1000 + static_cast<double>(i % 97);
    gpu::ExpectedRandoms out;
    std::vector<double> ms;
    for (int r = 0; r < repeat + 1; ++r)
        ms.push_back(1e3 * seconds_of([&] { estimator.estimate(rates, out); }));
    return median(ms);
}

}  // namespace

void run_cuda_pipeline(const config::Scanner& scanner, const config::Calibration& calibration,
                       gpu::PipelineOptions options, const CudaPipelineBench& bench) {
    if (const auto reason = gpu::cuda_unusable_reason()) throw std::runtime_error(*reason);
    constexpr std::size_t mi = 1U << 20;
    constexpr std::size_t largest = 16 * mi;
    options.threads = std::min(4U, std::max(1U, std::thread::hardware_concurrency()));
    const Input input = make_input(scanner, bench.singles_per_s, bench.frames);
    std::printf("%zu Mi frames at %.3g/s in %zu spans, median of %d\n", input.frames / mi,
                bench.singles_per_s, input.spans.size(), bench.repeat);

    double h2d_16 = 0;
    double h2d_1 = 0;
    {
        gpu::cuda::Memory memory(gpu::cuda::Memory::Purpose::use);
        auto* const a = memory.device<std::byte>(largest * 16);
        auto* const b = memory.device<std::byte>(largest * 16);
        h2d_16 = copy_rate(a, input.data, largest * 16, cudaMemcpyHostToDevice, bench.repeat);
        h2d_1 = copy_rate(a, input.data, mi * 16, cudaMemcpyHostToDevice, bench.repeat);
        const double device = copy_rate(b, a, largest * 16, cudaMemcpyDeviceToDevice, bench.repeat);
        const double whole_input = input_rate(input, a, largest * 16, bench.repeat);
        std::printf(
            "host to device %.1f GB/s (16 Mi frames at a time), %.1f GB/s (1 Mi), %.1f GB/s (all of the "
            "input once); device copy %.2f TB/s read and written\n",
            h2d_16 / 1e9, h2d_1 / 1e9, whole_input / 1e9, 2 * device / 1e12);
    }

    std::printf("\nwhole pipeline, pinned frames to records\n%-12s %10s %14s\n", "slice", "G frames/s",
                "of H2D-only");
    for (const std::size_t slice : {mi, 4 * mi, largest}) {
        options.max_slice_frames = static_cast<std::uint32_t>(slice);
        options.max_pending_singles = slice + 4 * mi;
        std::vector<std::vector<gpu::SliceTimeline>> passes;
        const auto pipeline = gpu::make_timed_cuda_pipeline(
            options, calibration, [&](const gpu::SliceTimeline& line) { passes.back().push_back(line); });
        const Whole whole = run_whole(input, *pipeline, slice, bench.repeat, [&] { passes.emplace_back(); });
        const auto of_bus = [&](double rate) { return 100 * rate * 16 / h2d_16; };
        std::printf(
            "%3zu Mi        %10.3f   %6.1f %%  (%.1f to %.1f; %s; accepted %.1f %%, %llu prompts, %llu "
            "delayeds)\n",
            slice / mi, whole.rate / 1e9, of_bus(whole.rate), of_bus(whole.slowest), of_bus(whole.fastest),
            pipeline->description().c_str(),
            100.0 * static_cast<double>(whole.frames.accepted) / static_cast<double>(whole.frames.received),
            static_cast<unsigned long long>(whole.singles.prompts),
            static_cast<unsigned long long>(whole.singles.delayeds));
        passes.erase(passes.begin());  // the first is not counted
        print_timeline(passes);
    }

    constexpr double tick_s = 1e-11;
    std::printf("\nexpected randoms of %u crystals: %.3f ms on the GPU, %.3f ms on the CPU\n",
                options.geometry.crystal_count(),
                randoms_ms(*gpu::make_cuda_randoms(options.geometry, options.rules, tick_s), options.geometry,
                           bench.repeat),
                randoms_ms(*gpu::make_host_randoms(options.geometry, options.rules, tick_s), options.geometry,
                           bench.repeat));
    std::printf("\ndevice only, one slice of 16 Mi frames\n%-26s %7s %7s %7s %7s   %27s\n", "", "convert",
                "order", "find", "whole", "G frames/s of each");
    options.max_slice_frames = static_cast<std::uint32_t>(largest);
    options.max_pending_singles = 4 * mi;
    std::size_t used = 0;
    std::size_t end = 0;
    while (end < input.spans.size() && used + input.spans[end].count <= largest)
        used += input.spans[end++].count;
    const std::span<const gpu::FrameSpan> spans(input.spans.data(), end);
    gpu::SingleCounts counts;
    const StageTimes poisson = run_stages(calibration, options, spans, bench.repeat, counts);
    print_stages("Poisson", poisson, used, counts, poisson.whole);
    if (!bench.adversarial) return;

    // Nothing is filtered out of what follows, so that the times stay as they are made.
    options.energy.filter = false;
    const StageTimes unfiltered = run_stages(calibration, options, spans, bench.repeat, counts);
    print_stages("Poisson, not filtered", unfiltered, used, counts, unfiltered.whole);
    const std::uint64_t tau = options.rules.window;
    // Neighbours in time come from different modules, and far apart in the slice.
    std::uint64_t stride = 7'368'787;
    while (std::gcd(stride, std::uint64_t{used}) != 1)
        ++stride;
    const auto rewrite = [&](const char* name, const std::function<std::uint64_t(std::uint64_t)>& time_of) {
        std::uint64_t index = 0;
        for (const gpu::FrameSpan& span : spans) {
            auto* frame = const_cast<std::byte*>(span.frames);  // our own memory
            for (std::uint32_t k = 0; k < span.count; ++k, frame += net::frame_bytes)
                set_time(frame, time_of(index++ * stride % used));
        }
        const StageTimes t = run_stages(calibration, options, spans, bench.repeat, counts);
        print_stages(name, t, used, counts, unfiltered.whole);
    };
    constexpr std::uint64_t start = 1'000'000;
    rewrite("all times equal", [](std::uint64_t) { return start; });
    rewrite("gap tau/2 + 1", [=](std::uint64_t i) { return start + i * (tau / 2 + 1); });
    rewrite("gap tau/2", [=](std::uint64_t i) { return start + i * (tau / 2); });
    rewrite("gap tau", [=](std::uint64_t i) { return start + i * tau; });
    rewrite("gap tau/100", [=](std::uint64_t i) { return start + i * tau / 100; });
    rewrite("10 per window", [=](std::uint64_t i) {
        return start + i * tau / 10 + (i * 0x9E3779B97F4A7C15U >> 32) % (tau / 10 + 1);
    });
    rewrite("1000 of each time", [=](std::uint64_t i) { return start + i / 1000 * (tau / 2 + 1); });
}

}  // namespace petacq::bench

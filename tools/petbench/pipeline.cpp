// Suite "pipeline": conversion, order, coincidences and the whole, in frames per second.
#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>

#include "config/make_calibration.hpp"
#include "gpu/conversion_tables.hpp"
#include "gpu/host/coincidence.hpp"
#include "gpu/host/convert.hpp"
#include "gpu/host/order.hpp"
#include "tools/petbench/cuda/pipeline.hpp"
#include "tools/petbench/frames.hpp"
#include "tools/petbench/measure.hpp"
#include "tools/petbench/suites.hpp"

namespace petacq::bench {

namespace {

/// Spans [from, to) that make up one slice.
struct Cut {
    std::size_t from;
    std::size_t to;
};

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

struct Stages {
    std::vector<double> convert, order, coincidence;
};

/// One pass over the stream on one thread, stage by stage.
void run_stages(const Stream& stream, const std::vector<Cut>& cuts, const gpu::PipelineOptions& options,
                const gpu::OwnedTables& tables, Stages& stages) {
    gpu::WorkerPool pool(1);
    gpu::Orderer orderer(pool);
    gpu::CoincidenceFinder finder(gpu::PairRule::of(options.geometry, options.rules), options.rules, pool);
    gpu::LocalHistograms histograms(options.geometry);
    gpu::SinglesHistograms totals = gpu::make_histograms(options.geometry);
    std::vector<gpu::Single> converted(options.max_slice_frames + 4096);
    gpu::SingleBuffer ready, pending, later;
    std::vector<gpu::Coincidence> pairs;
    double convert = 0, order = 0, coincidence = 0;
    for (const Cut& c : cuts) {
        std::size_t n = 0;
        gpu::FrameCounts counts;
        convert += seconds_of([&] {
            for (std::size_t i = c.from; i < c.to; ++i) {
                if (histograms.nearly_full(stream.spans[i].count)) histograms.flush_into(totals);
                n = gpu::convert_span(stream.spans[i], 0, tables.view(), counts, histograms, converted.data(),
                                      n);
            }
        });
        ready.clear();
        const std::vector<std::span<const gpu::Single>> parts{pending.view(), {converted.data(), n}};
        order += seconds_of([&] {
            gpu::TimeRange range;
            for (const auto& part : parts)
                range.include(part);
            orderer.order(parts, range, stream.watermarks[c.to - 1], 1, ready, later);
        });
        std::swap(pending, later);
        pairs.clear();
        gpu::SingleCounts singles;
        coincidence += seconds_of([&] { finder.find(ready.view(), 0, ready.size(), 1, pairs, singles); });
    }
    const std::size_t whole_frames = stream.bytes.size() / net::frame_bytes;
    const auto frames = static_cast<double>(whole_frames);
    stages.convert.push_back(frames / convert);
    stages.order.push_back(frames / order);
    stages.coincidence.push_back(frames / coincidence);
}

double run_whole(const Stream& stream, const std::vector<Cut>& cuts, gpu::Pipeline& pipeline,
                 gpu::FrameCounts& frames, gpu::SingleCounts& singles) {
    frames = {};
    singles = {};
    gpu::SliceResult result;
    pipeline.reset();
    const double seconds = seconds_of([&] {
        for (std::size_t i = 0; i < cuts.size(); ++i) {
            gpu::Slice slice;
            slice.id = i;
            slice.spans = std::span(stream.spans).subspan(cuts[i].from, cuts[i].to - cuts[i].from);
            slice.watermark = stream.watermarks[cuts[i].to - 1];
            if (i + 1 == cuts.size()) slice.close_at = UINT64_MAX;
            pipeline.submit(slice);
            pipeline.collect(result, true);
            frames += result.frames;
            singles += result.counts;
        }
    });
    return static_cast<double>(frames.received) / seconds;
}

/// 1, 2, 4 and so on below `most`, and `most`.
std::vector<std::uint32_t> doubling_to(std::uint32_t most) {
    std::vector<std::uint32_t> counts;
    for (std::uint32_t n = 1; n < most; n *= 2)
        counts.push_back(n);
    counts.push_back(most);
    return counts;
}

}  // namespace

void run(const PipelineSuite& o) {
    const config::Scanner scanner = config::load_scanner(o.scanner);
    config::CalibrationModel model;
    model.bins = o.bins;
    model.nonlinearity = o.nonlinearity;
    const config::Calibration calibration = config::make_calibration(scanner, model);
    gpu::PipelineOptions options;
    options.geometry = scanner.geometry;
    options.energy = {true, 350, 650};
    options.rules.window = static_cast<std::uint32_t>(o.window_ns * 1e3 / scanner.tick_ps);
    options.rules.min_module_difference = 2;
    if (o.delay_ns > 0) options.rules.delay = static_cast<std::uint64_t>(o.delay_ns * 1e3 / scanner.tick_ps);
    options.rules.policy = config::from_name<gpu::MultiplesPolicy>(o.policy);
    options.rules.mode = config::from_name<gpu::WindowMode>(o.mode);

    const std::uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
    if (o.backend == "cuda") {
#ifdef PETACQ_HAVE_CUDA
        options.threads = o.threads.empty() ? std::clamp(cores / 2, 1U, 8U) : o.threads.back();
        return run_cuda_pipeline(scanner, calibration, options, o);
#else
        throw std::runtime_error("this petbench is built without CUDA");
#endif
    }
    const std::size_t slice_frames = o.slice_frames > 0 ? o.slice_frames : 262'144;
    options.max_slice_frames = static_cast<std::uint32_t>(slice_frames);
    const std::size_t frames_wanted = o.frames > 0 ? o.frames : std::size_t{8} << 20;
    StreamOptions stream_options;
    stream_options.frames = frames_wanted;
    stream_options.singles_per_s = o.rate;
    const Stream stream = make_stream(scanner, stream_options);
    const std::vector<Cut> cuts = cut(stream, slice_frames);

    const gpu::OwnedTables tables(options, calibration);
    std::printf("scanner %s, %u crystals, tables %.1f MiB (%u energy bins kept of %u)\n",
                scanner.name.c_str(), scanner.geometry.crystal_count(),
                static_cast<double>(tables.bytes()) / 0x1p20, tables.view().bins, calibration.bins);
    std::printf("%zu frames at %.3g/s, slices of %zu, window %u ticks, %s, mode %s, median of %d\n",
                frames_wanted, o.rate, slice_frames, options.rules.window, o.policy.c_str(), o.mode.c_str(),
                o.repeat);

    Stages stages;
    for (int r = 0; r < o.repeat; ++r)
        run_stages(stream, cuts, options, tables, stages);
    std::printf("%-24s %10s\n", "one thread", "M frames/s");
    std::printf("%-24s %10.1f\n", "convert", median(stages.convert) / 1e6);
    std::printf("%-24s %10.1f\n", "order", median(stages.order) / 1e6);
    std::printf("%-24s %10.1f\n", "coincidence", median(stages.coincidence) / 1e6);

    const std::vector<std::uint32_t> thread_counts = o.threads.empty() ? doubling_to(cores) : o.threads;
    double single = 0;
    for (const std::uint32_t threads : thread_counts) {
        options.threads = threads;
        const auto pipeline = gpu::make_host_pipeline(options, calibration);
        std::vector<double> rates;
        gpu::FrameCounts frames;
        gpu::SingleCounts singles;
        for (int r = 0; r < o.repeat + 1; ++r) {
            const double rate = run_whole(stream, cuts, *pipeline, frames, singles);
            if (r > 0) rates.push_back(rate);  // the first pass touches memory for the first time
        }
        const double rate = median(rates);
        if (single == 0) single = rate / threads;
        std::printf("whole, %2u thread%s       %10.1f   %.1f per thread, %.2f of linear\n", threads,
                    threads == 1 ? " " : "s", rate / 1e6, rate / threads / 1e6, rate / threads / single);
        if (threads == thread_counts.back()) {
            std::printf("accepted %.1f %%, prompts %llu, delayeds %llu\n",
                        100.0 * static_cast<double>(frames.accepted) / static_cast<double>(frames.received),
                        static_cast<unsigned long long>(singles.prompts),
                        static_cast<unsigned long long>(singles.delayeds));
        }
    }
}

}  // namespace petacq::bench

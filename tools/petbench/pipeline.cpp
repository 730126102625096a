// Suite "pipeline": conversion, order, coincidences and the whole, in frames per second.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "config/make_calibration.hpp"
#include "gpu/cpu/coincidence.hpp"
#include "gpu/cpu/convert.hpp"
#include "gpu/cpu/cpu_tables.hpp"
#include "gpu/cpu/order.hpp"
#include "tools/petbench/base/frames.hpp"
#include "tools/petbench/base/measure.hpp"
#include "tools/petbench/base/suites.hpp"
#include "tools/petbench/cuda/pipeline.hpp"
#include "tools/petbench/pipeline/pass.hpp"
#include "tools/petbench/pipeline/processes.hpp"

namespace petacq::bench {

namespace {

struct StageTimes {
    std::vector<double> convert, order, coincidence;
};

/// One pass over the stream on one thread, stage by stage.
void run_stages(const std::vector<gpu::Slice>& slices, const gpu::PipelineOptions& options,
                const gpu::HostTables& tables, StageTimes& stages) {
    gpu::ChunkStore store;
    gpu::Orderer orderer(store);
    const gpu::CoincidenceFinder finder(options.geometry, options.rules);
    gpu::ThreadSums sums(options.geometry);
    gpu::LocalHistograms histograms(options.geometry);
    std::vector<gpu::Single> converted(options.max_slice_frames + 4096);
    std::vector<std::unique_ptr<gpu::Chunk>> chunks;
    gpu::SingleBuffer ordered;
    gpu::Search search;
    double convert = 0, order = 0, coincidence = 0;
    std::uint64_t whole_frames = 0;
    for (const gpu::Slice& slice : slices) {
        std::size_t n = 0;
        gpu::ConvertedFrames to;
        convert += seconds_of([&] {
            std::uint64_t frames = 0;
            for (const gpu::FrameSpan& span : slice.spans)
                frames += span.count;
            whole_frames += frames;
            gpu::FrameCursor cursor(slice.spans, 0);
            n = gpu::convert_frames(cursor, frames, 0, tables, to, histograms, {converted.data()}).pairs;
        });
        order += seconds_of([&] {
            for (std::size_t at = 0; at < n; at += gpu::Chunk::max_singles) {
                chunks.push_back(store.take());
                chunks.back()->fill(
                    {converted.data() + at, std::min(n - at, std::size_t{gpu::Chunk::max_singles})},
                    orderer.bin_width());
            }
            orderer.start(chunks, slice.watermark);
            for (std::size_t i = 0; i < orderer.misfits(); ++i)
                orderer.refit(i);
            orderer.plan();
            ordered.clear();
            ordered.resize(orderer.size());
            for (std::size_t i = 0; i < orderer.groups(); ++i)
                orderer.sort(i, ordered.data());
            orderer.finish();
        });
        coincidence += seconds_of([&] {
            search.singles = ordered.view();
            search.decided = ordered.size();
            finder.divide(search, 0, {});
            for (std::size_t i = 0; i < search.count; ++i)
                finder.find(search, i, sums);
        });
    }
    const auto frames = static_cast<double>(whole_frames);
    stages.convert.push_back(frames / convert);
    stages.order.push_back(frames / order);
    stages.coincidence.push_back(frames / coincidence);
}

/// Passes of a stream of its own through a pipeline of one thread.
std::function<double()> one_thread(Stream made, std::size_t slice_frames, gpu::PipelineOptions options,
                                   const config::Calibration& calibration) {
    options.threads = 1;
    const auto stream = std::make_shared<const Stream>(std::move(made));
    const std::shared_ptr<gpu::Pipeline> pipeline = gpu::make_cpu_pipeline(options, calibration);
    return [stream, pipeline, slices = cut(stream->spans, stream->watermarks, slice_frames)] {
        return run_pass(slices, *pipeline).frames_per_s();
    };
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
    options.frame_version = scanner.frame_version;
    options.energy = {true, 350, 650};
    options.rules.window = static_cast<std::uint32_t>(o.window_ns * 1e3 / scanner.tick_ps);
    if (scanner.geometry.modules_around() >= 4) options.rules.min_module_difference = 2;
    if (o.delay_ns > 0) options.rules.delay = static_cast<std::uint64_t>(o.delay_ns * 1e3 / scanner.tick_ps);
    options.rules.delayeds = config::from_name<gpu::DelayedRule>(o.delayeds);
    options.rules.policy = config::from_name<gpu::MultiplesPolicy>(o.policy);
    options.rules.mode = config::from_name<gpu::WindowMode>(o.mode);
    options.rules.search = !o.singles;
    options.emit_singles = o.singles;
    options.spectra = o.spectra;
    options.devices = o.devices;

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
    stream_options.gamma_fraction = o.gammas;
    const std::vector<std::uint32_t> thread_counts = o.threads.empty() ? doubling_to(cores) : o.threads;

    std::optional<Processes> processes;
    if (o.processes) {
        const std::uint32_t most = *std::max_element(thread_counts.begin(), thread_counts.end());
        processes.emplace(most, [&](std::size_t i) {
            stream_options.seed = 2 + i;
            return one_thread(make_stream(scanner, stream_options), slice_frames, options, calibration);
        });
    }
    const Stream stream = make_stream(scanner, stream_options);
    const std::vector<gpu::Slice> slices = cut(stream.spans, stream.watermarks, slice_frames);

    const gpu::HostTables tables(options, calibration);
    std::printf("scanner %s, %u crystals, tables %.1f MiB (%u energy bins kept of %u)\n",
                scanner.name.c_str(), scanner.geometry.crystal_count(),
                static_cast<double>(tables.bytes()) / 0x1p20, tables.frames.view().bins, calibration.bins);
    std::printf("%zu frames at %.3g/s, slices of %zu, window %u ticks, %s, mode %s, median of %d\n",
                frames_wanted, o.rate, slice_frames, options.rules.window, o.policy.c_str(), o.mode.c_str(),
                o.repeat);

    StageTimes stages;
    for (int r = 0; r < o.repeat; ++r)
        run_stages(slices, options, tables, stages);
    const auto millions = [](double rate) { return fmt::format("{:.1f}", rate / 1e6); };
    const TextTable table(24, {10});
    table.row("one thread", {"M frames/s"});
    table.row("convert", {millions(median(stages.convert))});
    table.row("order", {millions(median(stages.order))});
    table.row("coincidence", {millions(median(stages.coincidence))});

    double single = 0;
    Pass pass;
    Pass triples;
    for (const std::uint32_t threads : thread_counts) {
        options.threads = threads;
        const auto pipeline = gpu::make_cpu_pipeline(options, calibration);
        std::vector<double> rates;
        std::vector<double> per_cpu_s;
        std::vector<double> apart;
        std::vector<double> with_spectra;
        std::vector<double> per_cpu_s_with_spectra;
        std::unique_ptr<gpu::Pipeline> of_triples;
        if (o.gammas > 0) {
            gpu::PipelineOptions with_gammas = options;
            with_gammas.rules.gammas = gamma_rules(scanner, o.gamma_window_ns);
            of_triples = gpu::make_cpu_pipeline(with_gammas, calibration);
        }
        std::vector<double> with_triples;
        std::vector<double> per_cpu_s_with_triples;
        for (int r = 0; r < o.repeat + 1; ++r) {
            const double cpu_before = cpu_seconds();
            pass = run_pass(slices, *pipeline);
            const double cpu = cpu_seconds() - cpu_before;
            const double sum = processes ? processes->measure(threads) : 0;
            const double cpu_between = cpu_seconds();
            const double counting = o.spectra ? run_pass(slices, *pipeline, true).frames_per_s() : 0;
            const double cpu_counting = cpu_seconds() - cpu_between;
            const double cpu_before_triples = cpu_seconds();
            if (of_triples) triples = run_pass(slices, *of_triples);
            const double cpu_triples = cpu_seconds() - cpu_before_triples;
            if (r == 0) continue;  // the first pass touches memory for the first time
            if (of_triples) {
                with_triples.push_back(triples.frames_per_s());
                per_cpu_s_with_triples.push_back(static_cast<double>(triples.frames.received) / cpu_triples);
            }
            rates.push_back(pass.frames_per_s());
            per_cpu_s.push_back(static_cast<double>(pass.frames.received) / cpu);
            apart.push_back(sum);
            if (!o.spectra) continue;
            with_spectra.push_back(counting);
            per_cpu_s_with_spectra.push_back(static_cast<double>(pass.frames.received) / cpu_counting);
        }
        const double rate = median(rates);
        if (single == 0) single = rate / threads;
        std::string rest =
            fmt::format("   {} per thread, {:.2f} of linear, {} per CPU second", millions(rate / threads),
                        rate / threads / single, millions(median(per_cpu_s)));
        if (processes) {
            rest +=
                fmt::format("; {} process{} of one thread {}, ratio {:.2f}", threads,
                            threads == 1 ? "" : "es", millions(median(apart)), median_ratio(rates, apart));
        }
        if (o.spectra) {
            rest += fmt::format("; with spectra {}, ratio {:.2f}, {} per CPU second",
                                millions(median(with_spectra)), median_ratio(with_spectra, rates),
                                millions(median(per_cpu_s_with_spectra)));
        }
        if (of_triples) {
            rest += fmt::format("; with triples {}, ratio {:.2f}, {} per CPU second, ratio {:.2f}",
                                millions(median(with_triples)), median_ratio(with_triples, rates),
                                millions(median(per_cpu_s_with_triples)),
                                median_ratio(per_cpu_s_with_triples, per_cpu_s));
        }
        table.row(fmt::format("whole, {:2} thread{}", threads, threads == 1 ? "" : "s"), {millions(rate)},
                  rest);
    }
    std::printf("accepted %.1f %%, prompts %llu, delayeds %llu\n",
                100.0 * static_cast<double>(pass.frames.accepted) / static_cast<double>(pass.frames.received),
                static_cast<unsigned long long>(pass.singles.prompts),
                static_cast<unsigned long long>(pass.singles.delayeds));
    if (o.gammas > 0) {
        std::printf("gammas %llu used, %llu unused; triples %llu\n",
                    static_cast<unsigned long long>(triples.gammas.used),
                    static_cast<unsigned long long>(triples.gammas.unused),
                    static_cast<unsigned long long>(triples.gammas.triples));
    }
}

}  // namespace petacq::bench

#include "tools/petbench/cuda/pipeline.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/cuda/cuda_pipeline.hpp"
#include "gpu/cuda/timeline.hpp"
#include "tools/petbench/base/frames.hpp"
#include "tools/petbench/base/measure.hpp"
#include "tools/petbench/cuda/input.hpp"
#include "tools/petbench/cuda/stages.hpp"
#include "tools/petbench/cuda/timeline.hpp"
#include "tools/petbench/pipeline/pass.hpp"

namespace petacq::bench {

namespace {

/// The passes of a pipeline.
struct Whole {
    std::vector<double> rates;
    Pass last;

    void add(const Pass& pass) {
        rates.push_back(pass.frames_per_s());
        last = pass;
    }
    [[nodiscard]] double rate() const { return median(rates); }
};

}  // namespace

void run_cuda_pipeline(const config::Scanner& scanner, const config::Calibration& calibration,
                       gpu::PipelineOptions options, const PipelineSuite& suite) {
    if (const auto reason = gpu::cuda_unusable_reason(options.devices)) throw std::runtime_error(*reason);
    constexpr std::size_t mi = std::size_t{1} << 20;
    const std::vector<std::size_t> slice_frames = suite.slice_frames > 0
                                                      ? std::vector<std::size_t>{suite.slice_frames}
                                                      : std::vector<std::size_t>{mi, 4 * mi, 16 * mi};
    const CudaInput input = make_cuda_input(scanner, suite.rate, suite.gammas,
                                            suite.frames > 0 ? suite.frames : 1024 * mi, suite.receivers);
    std::printf("%.1f Mi frames at %.3g/s in %zu spans, window %u ticks, %s, mode %s, median of %d\n",
                static_cast<double>(input.frames) / 0x1p20, suite.rate, input.spans.size(),
                options.rules.window, name_of(options.rules.policy), name_of(options.rules.mode),
                suite.repeat);
    const CopyRates copies = measure_copies(input, suite.repeat);
    std::printf(
        "host to device %.1f GB/s (up to 16 Mi frames at a time), %.1f GB/s (1 Mi), %.1f GB/s (1 Mi, two "
        "streams in turn), %.1f GB/s (2 MiB), %.1f GB/s (all of the input once); device copy %.2f TB/s read "
        "and written\n",
        copies.up / 1e9, copies.up_small / 1e9, copies.up_two / 1e9, copies.up_batches / 1e9,
        copies.up_all / 1e9, 2 * copies.device / 1e12);

    std::printf(
        "\nwhole pipeline, pinned frames to records; host to device %.2f G frames/s, device copy %.1f\n",
        copies.up / 16e9, copies.device / 16e9);
    const TextTable table(14, {10, 14, 14});
    table.row("slice", {"G frames/s", "of one bus", "of the copy"});
    for (const std::size_t frames : slice_frames) {
        const std::string name = fmt::format("{:9.3f} Mi", static_cast<double>(frames) / 0x1p20);
        if (frames > input.frames) {
            table.row(name, {}, " left out: more than the frames of the input (--frames)");
            continue;
        }
        options.max_slice_frames = static_cast<std::uint32_t>(frames);
        options.max_pending_singles = frames + 4 * mi;
        const std::vector<gpu::Slice> slices = cut(input.spans, input.watermarks, frames);
        std::vector<std::vector<gpu::SliceTimeline>> passes;
        const auto pipeline = gpu::make_timed_cuda_pipeline(
            options, calibration, [&](const gpu::SliceTimeline& line) { passes.back().push_back(line); });
        std::vector<std::vector<gpu::SliceTimeline>> passes_of_triples;
        std::unique_ptr<gpu::Pipeline> of_triples;
        if (suite.gammas > 0) {
            gpu::PipelineOptions with_gammas = options;
            with_gammas.rules.gammas = gamma_rules(scanner, suite.gamma_window_ns);
            of_triples = gpu::make_timed_cuda_pipeline(
                with_gammas, calibration,
                [&](const gpu::SliceTimeline& line) { passes_of_triples.back().push_back(line); });
        }
        Whole whole;
        Whole counting;
        Whole triples;
        for (int r = 0; r < suite.repeat + 1; ++r) {
            const auto add_pass = [&](gpu::Pipeline& of, bool spectra, Whole& to) {
                const Pass pass = run_pass(slices, of, spectra);
                if (r > 0) to.add(pass);  // the first touches memory for the first time
            };
            passes.emplace_back();
            add_pass(*pipeline, false, whole);
            if (suite.spectra) {
                passes.emplace_back();
                add_pass(*pipeline, true, counting);
                passes.pop_back();
            }
            if (of_triples) {
                passes_of_triples.emplace_back();
                add_pass(*of_triples, false, triples);
            }
        }
        const auto of_bus = [&](double rate) { return 100 * rate * 16 / copies.up; };
        table.row(
            name,
            {fmt::format("{:.3f}", whole.rate() / 1e9), fmt::format("{:.1f} %", of_bus(whole.rate())),
             fmt::format("{:.2f} %", 100 * whole.rate() * 16 / copies.device)},
            fmt::format("  ({:.1f} to {:.1f} of one bus; {}; accepted {:.1f} %, {} prompts, {} delayeds)",
                        of_bus(std::ranges::min(whole.rates)), of_bus(std::ranges::max(whole.rates)),
                        pipeline->description(),
                        100.0 * static_cast<double>(whole.last.frames.accepted) /
                            static_cast<double>(whole.last.frames.received),
                        whole.last.singles.prompts, whole.last.singles.delayeds));
        passes.erase(passes.begin());  // the first is not counted
        print_timeline(passes);
        print_bus_account(passes, copies.up);
        if (suite.spectra) {
            table.row("", {fmt::format("{:.3f}", counting.rate() / 1e9)},
                      fmt::format(" with spectra, ratio {:.2f}", median_ratio(counting.rates, whole.rates)));
        }
        if (of_triples) {
            table.row("", {fmt::format("{:.3f}", triples.rate() / 1e9)},
                      fmt::format(" with triples, ratio {:.2f} ({}; gammas {} used, {} unused, triples {})",
                                  median_ratio(triples.rates, whole.rates), of_triples->description(),
                                  triples.last.gammas.used, triples.last.gammas.unused,
                                  triples.last.gammas.triples));
            passes_of_triples.erase(passes_of_triples.begin());
            print_timeline(passes_of_triples);
            print_bus_account(passes_of_triples, copies.up);
        }
    }

    print_stages(calibration, options, input, slice_frames.back(), copies, suite.repeat);
}

}  // namespace petacq::bench

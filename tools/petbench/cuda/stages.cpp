#include "tools/petbench/cuda/stages.hpp"

#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "gpu/cuda/coincidence/search.hpp"
#include "gpu/cuda/convert/converter.hpp"
#include "gpu/cuda/convert/waiting_singles.hpp"
#include "gpu/cuda/order/ordering.hpp"
#include "net/wire.hpp"
#include "tools/petbench/base/measure.hpp"

namespace petacq::bench {

namespace {

using gpu::cuda::check;

struct StageTimes {
    double convert = 0, order = 0, find = 0, whole = 0;  // ms
    std::uint64_t prompts = 0;
};

/// Processes one slice repeatedly, with its frames already on the device.
StageTimes run_stages(const config::Calibration& calibration, const gpu::PipelineOptions& options,
                      std::span<const gpu::FrameSpan> spans, int repeat) {
    const gpu::OwnedTables tables(options, calibration);
    gpu::cuda::Converter converter(options, tables, gpu::cuda::room_for_singles(options),
                                   gpu::cuda::Memory::Purpose::use);
    gpu::cuda::Memory& memory = converter.memory();
    gpu::cuda::WaitingSingles waiting(options, converter);
    gpu::cuda::Ordering ordering(options, memory);
    gpu::cuda::CoincidenceSearch search(options, memory, ordering.scratch_bytes());
    gpu::cuda::DeviceSlice slice(options, memory, memory);
    const gpu::cuda::Stream& stream = converter.stream();
    slice.input = {0, spans, UINT64_MAX, UINT64_MAX};
    converter.upload(slice);
    check(cudaStreamSynchronize(converter.up()), "cudaStreamSynchronize", "copying frames to the device");
    fetch_table(slice.frames, stream);
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize", "copying frames to the device");
    std::vector<std::unique_ptr<gpu::cuda::Event>> at;
    at.reserve(8);
    for (int i = 0; i < 8; ++i)
        at.push_back(std::make_unique<gpu::cuda::Event>(static_cast<unsigned>(cudaEventDefault)));
    std::vector<double> convert, order, find, whole;
    for (int r = 0; r < repeat + 2; ++r) {
        bool again = false;
        waiting.reset();
        search.reset();
        check(cudaStreamSynchronize(stream), "cudaStreamSynchronize", "timing");
        const double seconds = seconds_of([&] {
            at[0]->record(stream);
            waiting.convert(slice, stream);
            at[1]->record(stream);
            converter.wait(slice, *at[1]);
            waiting.take_totals(slice);
            at[2]->record(stream);
            ordering.order(slice, waiting.ready(), stream);
            at[3]->record(stream);
            search.carry_over(slice, stream);
            ordering.complete(slice, {search.new_singles(), nullptr}, stream);
            search.search(slice, stream);
            at[4]->record(stream);
            at[4]->wait("timing coincidences");
            again = gpu::cuda::Ordering::has_long_runs(slice);
            if (again) {
                at[5]->record(stream);
                ordering.complete_long_runs(slice, {search.new_singles(), nullptr}, search.scratch(), stream);
                at[6]->record(stream);
                search.search(slice, stream);
                at[7]->record(stream);
                at[7]->wait("timing coincidences");
            }
            search.take_totals(slice);
        });
        if (r < 2) continue;
        const auto between = [&](int from, int to) { return milliseconds_between(*at[from], *at[to]); };
        convert.push_back(between(0, 1));
        order.push_back(between(2, 3) + (again ? between(5, 6) : 0));
        find.push_back(between(3, 4) + (again ? between(6, 7) : 0));
        whole.push_back(seconds * 1e3);
    }
    return {median(convert), median(order), median(find), median(whole), slice.result.counts.prompts};
}

class StagesTable {
  public:
    StagesTable(std::size_t frames, const CopyRates& copies) : frames_(frames), copies_(copies) {
        std::printf(
            "\ndevice only, one slice of %.1f Mi frames; host to device %.2f G frames/s, device copy %.1f\n",
            static_cast<double>(frames) / 0x1p20, copies.up / 16e9, copies.device / 16e9);
        TextTable(36, {7, 7, 7, 7, 29, 9, 7})
            .row("", {"convert", "order", "find", "whole", "G frames/s of each", "of the", "of the"});
        table_.row("", {"", "", "", "ms", "", "", "", "", "bus", "copy", "time"});
    }
    /// `poisson`: whole of the row that this one is compared with.
    void row(const std::string& name, const StageTimes& t, double poisson) const {
        const auto rate = [&](double ms) { return static_cast<double>(frames_) / ms / 1e6; };
        const std::array times = {t.convert, t.order, t.find, t.whole};
        std::vector<std::string> cells;
        for (const double ms : times)
            cells.push_back(fmt::format("{:.3f}", ms));
        for (const double ms : times)
            cells.push_back(fmt::format("{:.2f}", rate(ms)));
        cells.push_back(fmt::format("{:.2f}x", rate(t.whole) * 16e9 / copies_.up));
        cells.push_back(fmt::format("{:.1f}%", 100 * rate(t.whole) * 16e9 / copies_.device));
        cells.push_back(fmt::format("{:.2f}x", t.whole / poisson));
        table_.row(name, cells, fmt::format("  {} prompts", t.prompts));
    }

  private:
    std::size_t frames_;
    CopyRates copies_;
    TextTable table_{36, {7, 7, 7, 7, 8, 6, 6, 6, 9, 7, 7}};
};

struct Adversary {
    const char* name;
    /// The time of the i-th single, for a window of `tau`.
    std::function<std::uint64_t(std::uint64_t i, std::uint64_t tau)> time_of;
    bool every_policy;  ///< measured with every multiples policy, since it depends on how groups are resolved
};

/// About `count` singles in every window.
Adversary dense(const char* name, std::uint64_t count) {
    const auto time_of = [=](std::uint64_t i, std::uint64_t tau) {
        return i * tau / count + (i * 0x9E3779B97F4A7C15U >> 32) % (tau / count + 1);
    };
    return {name, time_of, true};
}

std::vector<Adversary> adversaries() {
    return {{"all times equal", [](std::uint64_t, std::uint64_t) { return std::uint64_t{0}; }, true},
            {"gap tau/2 + 1", [](std::uint64_t i, std::uint64_t tau) { return i * (tau / 2 + 1); }, false},
            {"gap tau/2", [](std::uint64_t i, std::uint64_t tau) { return i * (tau / 2); }, false},
            {"gap tau", [](std::uint64_t i, std::uint64_t tau) { return i * tau; }, false},
            {"gap tau/100", [](std::uint64_t i, std::uint64_t tau) { return i * tau / 100; }, false},
            dense("10 per window", 10),
            dense("60 per window", 60),
            {"1000 of each time", [](std::uint64_t i, std::uint64_t tau) { return i / 1000 * (tau / 2 + 1); },
             false}};
}

}  // namespace

void print_stages(const config::Calibration& calibration, gpu::PipelineOptions options,
                  const CudaInput& input, std::size_t slice_frames, const CopyRates& copies, int repeat) {
    std::size_t used = 0;
    std::size_t end = 0;
    while (end < input.spans.size() && used + input.spans[end].count <= slice_frames)
        used += input.spans[end++].count;
    if (used == 0) return;
    const std::span<const gpu::FrameSpan> spans(input.spans.data(), end);
    options.max_slice_frames = static_cast<std::uint32_t>(used);
    options.max_pending_singles = used / 4;
    const StagesTable table(used, copies);
    const StageTimes poisson = run_stages(calibration, options, spans, repeat);
    table.row("Poisson", poisson, poisson.whole);

    // The filter is off, so that the times stay as generated.
    options.energy.filter = false;
    const gpu::MultiplesPolicy policy = options.rules.policy;
    const double unfiltered = [&] {
        const StageTimes t = run_stages(calibration, options, spans, repeat);
        table.row("Poisson, not filtered", t, t.whole);
        return t.whole;
    }();
    // Neighbours in time come from different modules, and far apart in the slice.
    std::uint64_t stride = 7'368'787;
    while (std::gcd(stride, std::uint64_t{used}) != 1)
        ++stride;
    constexpr std::uint64_t start = 1'000'000;
    for (const Adversary& adversary : adversaries()) {
        std::uint64_t index = 0;
        for (const gpu::FrameSpan& span : spans) {
            auto* frame = const_cast<std::byte*>(span.frames);  // our own memory
            for (std::uint32_t k = 0; k < span.count; ++k, frame += net::frame_bytes) {
                const std::uint64_t place = index++ * stride % used;
                set_time(frame, start + adversary.time_of(place, options.rules.window));
            }
        }
        options.rules.policy = policy;
        table.row(adversary.name, run_stages(calibration, options, spans, repeat), unfiltered);
        if (!adversary.every_policy) continue;
        for (const auto other :
             {gpu::MultiplesPolicy::take_winner_of_goods, gpu::MultiplesPolicy::take_all_goods}) {
            if (other == policy) continue;
            options.rules.policy = other;
            table.row(std::string("  ") + adversary.name + ", " + name_of(other),
                      run_stages(calibration, options, spans, repeat), unfiltered);
        }
    }
}

}  // namespace petacq::bench

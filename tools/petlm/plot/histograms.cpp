#include "tools/petlm/plot/histograms.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "config/energy_bins.hpp"
#include "config/shape/extent.hpp"
#include "tools/petlm/records/in_order.hpp"

namespace petacq::petlm {
namespace {

constexpr std::uint32_t max_differences = 401;
constexpr std::uint32_t max_ring_bins = 1024;
constexpr std::uint32_t max_angles = 1024;
constexpr std::uint32_t max_radial = 1024;

/// No finer than fits a picture.
LineBins lines_of(const config::Scanner& scanner, const config::DepthOfInteraction& depth) {
    const std::uint32_t angles = std::min(LineBins::angles_of(scanner), max_angles);
    const std::uint32_t radial =
        LineBins::radial_of(scanner, config::extent_of(scanner).transaxial_pitch_mm / 2);
    return {scanner, depth, angles, std::min(radial, max_radial)};
}

void add(Counts& to, const Counts& more) {
    std::transform(to.begin(), to.end(), more.begin(), to.begin(), std::plus<>());
}

/// Crystal a is that of the earlier photon. The difference of all pairs is that of the larger number less the
/// other, and in a BDM that of its partners less its own: an offset of a BDM moves its peak and does not
/// widen it.
void add_width(const TimeWidths& widths, const gpu::Coincidence& c, std::vector<TimeCounts>& to) {
    const TimeWidths::Difference d = widths.of(c.crystal_a, c.crystal_b, c.dt);
    const auto count = [&](TimeCounts& counts, double ps) {
        const std::uint32_t bin = widths.bin_of(ps);
        if (bin == TimeWidths::outside) return;
        ++counts.bins[bin];
        ++counts.pairs;
        counts.source_ps2 += d.variance_ps2;
    };
    count(to.front(), c.crystal_b > c.crystal_a ? d.ps : -d.ps);
    if (!widths.by_module()) return;
    count(to[widths.histogram_of(c.crystal_a)], d.ps);
    count(to[widths.histogram_of(c.crystal_b)], -d.ps);
}

void add_pair(const PairBins& bins, const gpu::Coincidence& c, std::uint32_t time_bin, PairHistograms& h) {
    ++h.pairs;
    ++h.energy[energy_bin(c.energy_a, config::energy_bin_keV)];
    ++h.energy[energy_bin(c.energy_b, config::energy_bin_keV)];
    ++h.crystals[c.crystal_a];
    ++h.crystals[c.crystal_b];
    ++h.time[time_bin];
    if (c.dt <= bins.differences.window) {
        const std::int64_t signed_dt = c.crystal_b > c.crystal_a ? std::int64_t{c.dt} : -std::int64_t{c.dt};
        ++h.difference[bins.differences.of(signed_dt)];
        if (bins.widths && c.kind == gpu::Kind::prompt) add_width(*bins.widths, c, h.widths);
    } else {
        ++h.beyond_window;
    }
    const std::uint32_t ring_a = bins.rings.of(c.crystal_a);
    const std::uint32_t ring_b = bins.rings.of(c.crystal_b);
    const std::uint32_t a = bins.lines.column_of(c.crystal_a);
    const std::uint32_t b = bins.lines.column_of(c.crystal_b);
    ++h.planes[ring_a + ring_b];
    const std::uint32_t first = (a <= b ? ring_a : ring_b) / bins.rings_per_bin;
    const std::uint32_t second = (a <= b ? ring_b : ring_a) / bins.rings_per_bin;
    ++h.michelogram[std::size_t{first} * bins.ring_bins + second];
    const std::uint32_t line = bins.lines.of_columns(a, b);
    ++(line == LineBins::outside ? h.beyond_sinogram : h.sinogram[line]);
}

}  // namespace

std::uint32_t energy_bin(float energy, float bin_keV) {
    const float bin = energy * (1 / bin_keV);
    // The negation covers NaN.
    if (!(bin >= 0 && bin < static_cast<float>(config::energy_bins))) return config::energy_bins - 1;
    return static_cast<std::uint32_t>(bin);
}

TimeBins TimeBins::covering(std::uint64_t begin, std::uint64_t end, double tick_ps, std::uint32_t most) {
    const double ticks = static_cast<double>(end - begin) + 1;
    const double tick_s = tick_ps * 1e-12;
    const double min_s = ticks * tick_s / most;
    double step_s = std::pow(10, std::floor(std::log10(min_s)));
    for (const double factor : {2.0, 2.5, 2.0}) {  // 1, 2, 5, 10
        if (step_s >= min_s * (1 - 1e-9)) break;
        step_s *= factor;
    }
    TimeBins bins;
    bins.begin = begin;
    bins.width = static_cast<std::uint64_t>(std::clamp(std::round(step_s / tick_s), 1.0, 9e18));
    bins.count = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>((end - begin) / bins.width + 1, 1, std::uint64_t{most} + 1));
    return bins;
}

DifferenceBins DifferenceBins::covering(std::uint32_t window) {
    DifferenceBins bins;
    bins.window = window;
    const std::uint64_t ticks = 2 * std::uint64_t{window} + 1;
    const std::uint64_t width = (ticks + max_differences - 1) / max_differences;
    bins.width = static_cast<std::uint32_t>(width | 1U);
    bins.least = -static_cast<std::int32_t>((std::uint64_t{window} + bins.width / 2) / bins.width);
    return bins;
}

PairBins::PairBins(const config::Scanner& scanner, const config::DepthOfInteraction& depth,
                   const TimeBins& time_bins, std::uint32_t window)
    : rings(scanner),
      rings_per_bin((rings.count() + max_ring_bins - 1) / max_ring_bins),
      ring_bins((rings.count() + rings_per_bin - 1) / rings_per_bin),
      times(time_bins),
      differences(DifferenceBins::covering(window)),
      lines(lines_of(scanner, depth)) {}

PairHistograms::PairHistograms(const PairBins& bins)
    : energy(config::energy_bins),
      crystals(bins.lines.crystals()),
      difference(bins.differences.count()),
      time(bins.times.count),
      michelogram(std::size_t{bins.ring_bins} * bins.ring_bins),
      sinogram(std::size_t{bins.lines.angles()} * bins.lines.radial()),
      phases(bins.phases.size(), Counts(PhaseBins::count)),
      planes(2 * std::size_t{bins.rings.count()} - 1) {
    if (bins.widths) widths.assign(bins.widths->histograms(), {Counts(bins.widths->bins()), 0, 0});
}

PairHistograms& PairHistograms::operator+=(const PairHistograms& other) {
    pairs += other.pairs;
    beyond_window += other.beyond_window;
    beyond_sinogram += other.beyond_sinogram;
    add(energy, other.energy);
    add(crystals, other.crystals);
    add(difference, other.difference);
    add(time, other.time);
    add(michelogram, other.michelogram);
    add(sinogram, other.sinogram);
    add(planes, other.planes);
    for (std::size_t i = 0; i < phases.size(); ++i)
        add(phases[i], other.phases[i]);
    for (std::size_t i = 0; i < widths.size(); ++i) {
        add(widths[i].bins, other.widths[i].bins);
        widths[i].pairs += other.widths[i].pairs;
        widths[i].source_ps2 += other.widths[i].source_ps2;
    }
    return *this;
}

void add_pairs(const PairBins& bins, std::span<const gpu::Coincidence> pairs, KindHistograms& to) {
    // Pairs are in the order of time: usually the bin is that of the previous pair.
    std::uint32_t bin = 0;
    std::uint64_t bin_begin = 1;
    std::uint64_t bin_end = 0;
    for (const gpu::Coincidence& c : pairs) {
        if (c.time < bin_begin || c.time >= bin_end) {
            bin = bins.times.of(c.time);
            bin_begin = bins.times.begin + bin * bins.times.width;
            const std::uint64_t left = UINT64_MAX - bin_begin;
            bin_end = left < bins.times.width ? UINT64_MAX : bin_begin + bins.times.width;
        }
        PairHistograms& kind = c.kind == gpu::Kind::prompt ? to.prompts : to.delayeds;
        add_pair(bins, c, bin, kind);
        for (std::size_t i = 0; i < bins.phases.size(); ++i) {
            if (const auto phase = bins.phases[i].cycles.bin_of(c.time, PhaseBins::count))
                ++kind.phases[i][*phase];
        }
    }
}

KindHistograms histograms_of(const ExportSource& source, const PairBins& bins) {
    using Part = std::unique_ptr<KindHistograms>;
    std::vector<Part> parts;  // that no thread uses
    InOrder<Part> counted([&](Part&& part) { parts.push_back(std::move(part)); });
    const KindHistograms empty{PairHistograms(bins), PairHistograms(bins)};
    source.for_each_block(
        bins.lines.crystals(),
        [&](const daemon::ListModeReader& reader) {
            if (parts.empty()) parts.push_back(std::make_unique<KindHistograms>(empty));
            Part part = std::move(parts.back());
            parts.pop_back();
            const auto pairs = reader.coincidences();
            counted.add(
                [&bins, part = std::move(part), block = std::vector(pairs.begin(), pairs.end())]() mutable {
                    add_pairs(bins, block, *part);
                    return std::move(part);
                });
        },
        "plotting");
    counted.finish();
    KindHistograms all = empty;
    for (const Part& part : parts) {
        all.prompts += part->prompts;
        all.delayeds += part->delayeds;
    }
    return all;
}

}  // namespace petacq::petlm

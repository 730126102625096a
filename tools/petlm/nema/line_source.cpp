#include "tools/petlm/nema/line_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "config/shape/extent.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/nema/spurious.hpp"

namespace petacq::nema {
namespace {

constexpr double half_strip_mm = 7;
constexpr double margin_mm = 8;
constexpr double polyethylene_per_cm = 0.0945;  // at 511 keV, by its electrons and those of water

/// Columns of a sinogram no further than `radius_mm` from the axis.
std::pair<std::size_t, std::size_t> columns_within(const SliceBins& bins, double radius_mm) {
    const auto radial = static_cast<std::size_t>(bins.lines().radial());
    std::size_t from = 0;
    while (from < radial && bins.lines().radial_mm(static_cast<std::uint32_t>(from)) < -radius_mm)
        ++from;
    return {from, radial - from};
}

/// Adds `weight` to those of the two bins on both sides of a place, as for linear interpolation.
void add_interpolated(std::vector<double>& weights, double place, double weight) {
    const double low = std::floor(place);
    const double part = place - low;
    const auto add = [&](double index, double share) {
        if (index >= 0 && index < static_cast<double>(weights.size()))
            weights[static_cast<std::size_t>(index)] += share * weight;
    };
    add(low, 1 - part);
    add(low + 1, part);
}

}  // namespace

double LinePhantom::volume_ml() const {
    return std::numbers::pi * diameter_mm * diameter_mm / 4 * length_mm * 1e-3;
}

const LinePhantom& phantom_of(Phantom phantom) {
    static constexpr std::array phantoms = {LinePhantom{"mouse", 25, 70, 10, 60},
                                            LinePhantom{"rat", 50, 150, 17.5, 140},
                                            LinePhantom{"monkey", 100, 400, 30, 390}};
    return phantoms.at(static_cast<std::size_t>(phantom));
}

StripCounts& StripCounts::operator+=(const StripCounts& other) {
    total += other.total;
    background += other.background;
    squares += other.squares;
    return *this;
}

StripCounts strip_counts(std::span<const double> projection, double bin_mm) {
    const std::size_t middle_bin = projection.size() / 2;
    const auto middle = static_cast<double>(middle_bin);
    const double half = half_strip_mm / bin_mm;
    std::vector<double> weights;
    for (std::size_t i = 0; i < projection.size(); ++i) {
        const double distance = static_cast<double>(i) - middle;
        const double inside = std::min(distance + 0.5, half) - std::max(distance - 0.5, -half);
        weights.push_back(1 - std::max(inside, 0.0));
    }
    // The trapezium below the straight line.
    add_interpolated(weights, middle - half, half);
    add_interpolated(weights, middle + half, half);
    StripCounts counts;
    for (std::size_t i = 0; i < projection.size(); ++i) {
        counts.total += projection[i];
        counts.background += weights[i] * projection[i];
        counts.squares += weights[i] * weights[i] * projection[i];
    }
    return counts;
}

Slices slices_of(const SliceBins& bins, const LinePhantom& phantom) {
    Slices slices;
    slices.to = bins.slices();
    while (slices.from < slices.to && std::abs(bins.slice_mm(slices.from)) > phantom.length_mm / 2) {
        ++slices.from;
        --slices.to;
    }
    return slices;
}

std::vector<StripCounts> strips_of(const SliceBins& bins, const Sinograms& sinograms,
                                   const LinePhantom& phantom, const Slices& slices) {
    const std::size_t radial = bins.lines().radial();
    const auto [first, last] = columns_within(bins, phantom.diameter_mm / 2 + margin_mm);
    const auto peaks = columns_of_source(bins, sum_of_slices(bins, sinograms), first, last);
    std::vector<StripCounts> strips;
    std::vector<double> projection(2 * radial - 1);
    for (std::size_t slice = slices.from; slice < slices.to; ++slice) {
        std::fill(projection.begin(), projection.end(), 0.0);
        for (std::size_t row = 0; row < peaks.size(); ++row) {
            const auto* const counts = sinograms.counts.data() + slice * bins.in_slice() + row * radial;
            for (std::size_t column = first; column < last; ++column)
                projection[column + radial - 1 - peaks[row]] += counts[column];
        }
        strips.push_back(strip_counts(projection, bins.lines().width_mm()));
    }
    return strips;
}

LineMeasurement measure(const CountRateOptions& options, Report& report) {
    const auto runs = runs_of(options);
    const config::Scanner& scanner = runs.front()->scanner();
    const LinePhantom& phantom = phantom_of(options.phantom);
    const config::DepthOfInteraction depth = petlm::depth_of_interaction(options.depth_mm, scanner);
    const config::Extent extent = config::extent_of(scanner);
    LineMeasurement measured{&phantom, SliceBins(scanner, depth, extent.transaxial_pitch_mm / 2), {}, {}, {},
                             0};
    const SliceBins& bins = measured.bins;
    const double radius = phantom.diameter_mm / 2 + margin_mm;
    if (radius > extent.bore_radius_mm) {
        throw petlm::UsageError(fmt::format(
            "--phantom {}: its radius and 8 mm do not fit into the bore of {:.4g} mm of the scanner {}",
            phantom.name, 2 * extent.bore_radius_mm, scanner.name));
    }
    measured.slices = slices_of(bins, phantom);
    corrections::AttenuatingObject body;
    body.add({{{0, 0, -phantom.length_mm / 2}, {0, 0, phantom.length_mm / 2}, phantom.diameter_mm / 2},
              polyethylene_per_cm});
    measured.intrinsic_per_s.assign(measured.slices.to - measured.slices.from, 0);
    for (const auto& run : runs) {
        const IntervalSeconds seconds(*run, run->whole());
        const NemaSpurious spurious(*run, bins, depth);
        const std::vector<double> shares = seconds.shares(bins, radius);
        const auto weight = petlm::mean_weight_of_delayeds(run->source());
        double delayeds = 0;
        const auto count_delayed = [&](const gpu::Coincidence& pair) {
            const std::size_t bin = bins.of(pair.crystal_a, pair.crystal_b);
            if (bin == SliceBins::outside) return;
            const std::size_t slice = bin / bins.in_slice();
            const std::size_t column = bin % bins.lines().radial();
            const auto [first, last] = columns_within(bins, radius);
            if (slice >= measured.slices.from && slice < measured.slices.to && column >= first &&
                column < last)
                ++delayeds;
        };
        const auto intervals = options.frame_s ? run->frames(*options.frame_s) : std::vector{run->whole()};
        run->for_each(
            intervals, bins,
            [&](std::size_t i, const Sinograms& sinograms) {
                LineAcquisition one;
                one.run = run->name();
                one.seconds = run->seconds_of(intervals[i]);
                one.mean_MBq = run->mean_MBq(intervals[i]);
                one.slices = strips_of(bins, sinograms, phantom, measured.slices);
                if (weight) one.randoms_of_delayeds = {*weight * delayeds, *weight * std::sqrt(delayeds)};
                delayeds = 0;
                if (!(one.seconds > 0)) return;
                const IntervalSeconds of_frame(*run, intervals[i]);
                const double all = of_frame.randoms();
                one.loss_factor = of_frame.loss_factor();
                for (std::size_t slice = 0; slice < one.slices.size(); ++slice) {
                    one.randoms.push_back(all * shares[measured.slices.from + slice]);
                    one.sum += one.slices[slice];
                    one.randoms_sum += one.randoms.back();
                }
                const double prompts = std::accumulate(sinograms.counts.begin(), sinograms.counts.end(),
                                                       static_cast<double>(sinograms.outside));
                const auto expected =
                    spurious.expect(intervals[i], line_source(phantom.line_at_mm, phantom.line_length_mm),
                                    body, prompts - all);
                one.spurious.resize(one.slices.size());
                const auto [first, last] = columns_within(bins, radius);
                for (std::size_t bin = 0; bin < expected.of_bin.size(); ++bin) {
                    const std::size_t slice = bin / bins.in_slice();
                    const std::size_t column = bin % bins.lines().radial();
                    if (slice < measured.slices.from || slice >= measured.slices.to || column < first ||
                        column >= last)
                        continue;
                    one.spurious[slice - measured.slices.from] += expected.of_bin[bin];
                    one.spurious_sum += expected.of_bin[bin];
                }
                measured.acquisitions.push_back(std::move(one));
            },
            count_delayed);
        report.inputs.push_back(run->sentence() + ' ' + seconds.loss_sentence());
        if (const auto said = spurious.sentence(); !said.empty()) report.procedure.push_back(said);
        add_warnings(*run, report.warnings);
    }
    if (options.background) {
        const auto background = background_of(*options.background, options, *runs.front());
        const NemaRun& run = *background;
        run.for_each({run.whole()}, bins, [&](std::size_t, const Sinograms& sinograms) {
            const auto [first, last] = columns_within(bins, radius);
            for (std::size_t i = 0; i < measured.intrinsic_per_s.size(); ++i) {
                const auto* const slice =
                    sinograms.counts.data() + (measured.slices.from + i) * bins.in_slice();
                for (std::size_t bin = 0; bin < bins.in_slice(); ++bin) {
                    const std::size_t column = bin % bins.lines().radial();
                    if (column >= first && column < last) measured.intrinsic_per_s[i] += slice[bin];
                }
                measured.intrinsic_per_s[i] /= run.seconds_of(run.whole());
                measured.intrinsic_sum_per_s += measured.intrinsic_per_s[i];
            }
        });
        report.inputs.push_back("Background: " + run.sentence());
    }
    return measured;
}

void describe(const CountRateOptions& options, const LineMeasurement& measured, Report& report) {
    const LinePhantom& p = *measured.phantom;
    report.procedure.push_back(
        fmt::format("Phantom ({}): a cylinder of polyethylene, {} mm in diameter and {} mm long, with a line "
                    "source of {} mm "
                    "{} mm from its axis, in the middle of the scanner.",
                    p.name, p.diameter_mm, p.length_mm, p.line_length_mm, p.line_at_mm));
    report.procedure.push_back(
        fmt::format("Prompts are rebinned to {} slices of {:.4g} mm (SSRB), with {} angles and bins of "
                    "{:.4g} mm. Bins further "
                    "than 8 mm from the edge of the phantom are set to zero. Each angle is shifted so that "
                    "the line lies in the "
                    "middle, and all angles are added up. Counts outside of the 14 mm around the line, and "
                    "those below a straight "
                    "line between its edges, are scatter and randoms.",
                    measured.bins.slices(), measured.bins.thickness_mm(), measured.bins.lines().angles(),
                    measured.bins.lines().width_mm()));
    report.procedure.push_back(
        "Randoms are those that petacqd expects from the singles of each second, in the same slices and "
        "bins; their "
        "noise is neglected.");
    report.deviations.push_back(
        "The line is looked for in each angle of the sum of all slices, not in each slice: with few counts, "
        "the largest "
        "bin of a slice is a matter of noise, which makes the trues too large. Angles that gaps between "
        "blocks leave "
        "without a line through it take its place from the others.");
    report.deviations.push_back(fmt::format(
        "Slices used: {} of {}, from {:.4g} to {:.4g} mm, those in which the phantom lies.",
        measured.slices.to - measured.slices.from, measured.bins.slices(),
        measured.bins.slice_mm(measured.slices.from), measured.bins.slice_mm(measured.slices.to - 1)));
    if (!options.background) {
        report.deviations.push_back(
            "No intrinsic background was measured (--background): it is taken as none, and counts as scatter "
            "where "
            "there is any.");
    }
}

LowActivity low_activity_of(const LineMeasurement& measured) {
    LowActivity low;
    low.slices.resize(measured.slices.to - measured.slices.from);
    low.spurious.resize(low.slices.size());
    for (const LineAcquisition& a : measured.acquisitions) {
        if (!a.few_randoms()) continue;
        for (std::size_t i = 0; i < low.slices.size(); ++i) {
            low.slices[i] += a.slices[i];
            low.spurious[i] += a.spurious[i];
        }
        low.sum += a.sum;
        low.randoms += a.randoms_sum;
        low.spurious_sum += a.spurious_sum;
        low.seconds += a.seconds;
    }
    return low;
}

Ratio background_share(const StripCounts& counts, double known) {
    const double part = counts.background - known;
    const double rest = counts.trues();
    const double all = part + rest;
    if (!(all > 0)) return {};
    const double variance = rest * rest * counts.variance_of_background() +
                            part * part * counts.variance_of_trues() - 2 * rest * part * counts.covariance();
    return {part / all, std::sqrt(std::max(0.0, variance)) / (all * all)};
}

}  // namespace petacq::nema

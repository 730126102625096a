#include "tools/petcal/estimate/unit_energies.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "config/median.hpp"

namespace petacq::petcal {

namespace {

constexpr double spread_in_unit = 0.4;     // of crystals around the peak of their unit
constexpr double usual_resolution = 0.05;  // sigma / energy, of the smoothing

/// The photopeak between two bins.
CrystalPeak peak_near(std::span<const std::uint32_t> spectrum, double from, double to,
                      const std::optional<PeakShape>& shape) {
    CrystalPeak out;
    const auto last = static_cast<double>(spectrum.size());
    const auto low = static_cast<std::ptrdiff_t>(std::clamp(from, 0.0, last));
    const auto high = static_cast<std::ptrdiff_t>(std::clamp(to, 0.0, last));
    const double counts = std::accumulate(spectrum.begin() + low, spectrum.begin() + high, 0.0);
    if (counts < min_peak_counts) return out;
    const std::vector<double> values(spectrum.begin(), spectrum.end());
    const auto near = highest_bin(values, from, to, usual_resolution * (from + to) / 2);
    const auto peak = near ? fit_photopeak(spectrum, *near, shape) : std::nullopt;
    out.state = PeakState::no_peak;
    if (!peak || peak->place < from || peak->place > to) return out;
    out.state = peak->counts < min_peak_counts ? PeakState::few_counts : PeakState::fitted;
    out.peak = *peak;
    return out;
}

double median_place(const std::vector<CrystalPeak>& crystals) {
    std::vector<double> places;
    for (const CrystalPeak& c : crystals)
        if (c.state == PeakState::fitted) places.push_back(c.peak.place);
    return config::median(std::move(places));
}

/// Adds a spectrum whose energies are scaled, bin by bin; all its counts stay whole.
void add_scaled(std::span<const std::uint32_t> spectrum, double scale, std::span<std::uint32_t> sum) {
    double below = 0;  // the counts below the next edge of `sum`
    std::size_t bin = 0;
    std::uint32_t added = 0;
    for (std::size_t to = 0; to + 1 < sum.size(); ++to) {
        const double edge = static_cast<double>(to + 1) / scale;
        while (bin < spectrum.size() && static_cast<double>(bin + 1) <= edge)
            below += spectrum[bin++];
        const double part = bin < spectrum.size() ? spectrum[bin] * (edge - static_cast<double>(bin)) : 0;
        const auto all = static_cast<std::uint32_t>(below + part);
        sum[to] += all - added;
        added = all;
    }
}

/// Those of all crystals, also of those with few counts in the peak.
void find_common_peak(std::span<const std::uint32_t> spectra, std::size_t bins, UnitEnergies& out) {
    std::vector<double> places;
    for (const CrystalPeak& c : out.crystals)
        if (c.peak.counts > 0) places.push_back(c.peak.place);
    out.sum.assign(bins, 0);
    out.common.reset();
    if (places.empty()) return;
    const double middle = config::median(std::move(places));
    for (std::size_t i = 0; i < out.crystals.size(); ++i)
        if (out.crystals[i].peak.counts > 0)
            add_scaled(spectra.subspan(i * bins, bins), middle / out.crystals[i].peak.place, out.sum);
    out.common = fit_photopeak(out.sum, middle);
}

/// Between which bins the peak of a crystal is searched.
struct BinRange {
    double from = 0;
    double to = 0;
};

/// Twice: the second time it is known what the peaks have in common. Those with few counts have it, too.
void fit_crystals(std::span<const std::uint32_t> spectra, std::size_t bins,
                  const std::vector<BinRange>& ranges, UnitEnergies& out) {
    std::optional<PeakShape> shape;
    for (const bool first : {true, false}) {
        for (std::size_t i = 0; i < ranges.size(); ++i)
            out.crystals[i] = peak_near(spectra.subspan(i * bins, bins), ranges[i].from, ranges[i].to, shape);
        find_common_peak(spectra, bins, out);
        if (!out.common) break;
        if (first) shape = {out.common->sigma / out.common->place, step_of(*out.common)};
    }
    out.median_place = median_place(out.crystals);
}

/// Of a unit with too few peaks; else empty.
std::string refusal(std::span<const std::uint32_t> spectra, std::size_t bins,
                    const std::vector<CrystalPeak>& crystals) {
    const auto count = static_cast<double>(crystals.size());
    const auto fitted = std::count_if(crystals.begin(), crystals.end(),
                                      [](const CrystalPeak& c) { return c.state == PeakState::fitted; });
    const double least = std::ceil(min_fitted_crystals * count);
    if (static_cast<double>(fitted) >= least) return "";
    double all = 0;
    double last = 0;
    for (std::size_t i = 0; i < spectra.size(); ++i) {
        all += spectra[i];
        if (i % bins == bins - 1) last += spectra[i];
    }
    std::string text = "expected photopeaks with at least " +
                       std::to_string(static_cast<int>(min_peak_counts)) + " counts in at least " +
                       std::to_string(static_cast<int>(least)) + " of " + std::to_string(crystals.size()) +
                       " crystals, found " + std::to_string(fitted) + " (" +
                       std::to_string(std::llround(all / count)) + " counts per crystal";
    if (all > 0 && last > 0.2 * all)
        text += "; " + std::to_string(std::llround(100 * last / all)) +
                " % of them are in the last bin: the factors are too large";
    return text + ")";
}

}  // namespace

UnitEnergies derive_unit_energies(std::span<const std::uint32_t> spectra, std::size_t bins, double from,
                                  double to) {
    UnitEnergies out;
    const std::size_t count = spectra.size() / bins;
    out.crystals.resize(count);
    std::vector<double> even(bins);  // with the same weight for each crystal: some are noisy
    for (std::size_t i = 0; i < count; ++i) {
        const auto spectrum = spectra.subspan(i * bins, bins);
        const double counts = std::accumulate(spectrum.begin(), spectrum.end(), 0.0);
        for (std::size_t bin = 0; bin < bins && counts > 0; ++bin)
            even[bin] += spectrum[bin] / counts;
    }
    const auto near = highest_bin(even, from, to, 2 * usual_resolution * (from + to) / 2);
    if (near) {
        const BinRange range{(1 - spread_in_unit) * *near, (1 + spread_in_unit) * *near};
        fit_crystals(spectra, bins, std::vector<BinRange>(count, range), out);
    }
    out.refused = refusal(spectra, bins, out.crystals);
    return out;
}

UnitEnergies derive_second_line(std::span<const std::uint32_t> spectra, std::size_t bins,
                                const UnitEnergies& first, double ratio) {
    constexpr double reach = 0.15;
    UnitEnergies out;
    out.crystals.resize(first.crystals.size());
    std::vector<BinRange> ranges;
    for (const CrystalPeak& c : first.crystals) {
        const double near = ratio * (c.state == PeakState::fitted ? c.peak.place : first.median_place);
        ranges.push_back({(1 - reach) * near, (1 + reach) * near});
    }
    fit_crystals(spectra, bins, ranges, out);
    out.refused = refusal(spectra, bins, out.crystals);
    return out;
}

}  // namespace petacq::petcal

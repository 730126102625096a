#include "tools/petcal/check/changes.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "config/error.hpp"
#include "tools/petcal/check/module_times.hpp"
#include "tools/petcal/derive/efficiencies.hpp"
#include "tools/petcal/derive/flood_shift.hpp"
#include "tools/petcal/derive/unit_energies.hpp"
#include "tools/petcal/units.hpp"

namespace petacq::petcal {

namespace {

/// Of the singles that a unit should have. As the daemon does: a source that moves leaves more.
constexpr double silent_share = 0.3;
/// Ends of prompts. The mean of as many is normally distributed.
constexpr double enough_ends = 30;
/// A crystal counts as much more than the others of its module, at most, as far as its prompts are concerned:
/// noise makes singles and no prompts.
constexpr double most_singles = 1.5;

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Singles of the run for each one of the reference, in the median unit.
double scale_of(const DailyRun& reference, const DailyRun& run) {
    std::vector<double> ratios;
    for (std::size_t unit = 0; unit < run.sums.units.size(); ++unit) {
        const double before = reference.sums.units[unit].singles;
        if (before > 0) ratios.push_back(run.sums.units[unit].singles / before);
    }
    return median(std::move(ratios));
}

void find_singles(const DailyRun& reference, const DailyRun& run, double scale, DetectorChanges& out) {
    const auto crystals = daemon::crystals_by_unit(run.scanner.geometry);
    for (const std::uint32_t crystal : crystals) {
        const double expected = scale * reference.singles[crystal];
        Change change;
        if (expected > 0) {
            change.size = run.singles[crystal] / expected - 1;
            // By the counts of both, if nothing has changed.
            change.error = std::sqrt(scale * (run.singles[crystal] + reference.singles[crystal])) / expected;
        }
        out.singles.push_back(change);
    }
    const std::vector<daemon::UnitSums>& before = reference.sums.units;
    for (std::size_t unit = 0; unit < before.size(); ++unit) {
        const double expected = scale * before[unit].singles;
        out.silent.push_back(expected >= 100 && run.sums.units[unit].singles < silent_share * expected);
    }
}

void find_photopeaks(const DailyRun& reference, const DailyRun& run, DetectorChanges& out) {
    constexpr std::size_t bins = config::Spectra::energy_bins;
    const config::Geometry& g = run.scanner.geometry;
    const std::size_t units = run.sums.units.size();
    std::vector<UnitEnergies> before(units);
    std::vector<UnitEnergies> after(units);
    for_each_unit("photopeaks", units, [&](std::size_t unit) {
        before[unit] =
            derive_unit_energies(unit_spectra(g, reference.spectra, unit), bins, peaks_from, peaks_to);
        after[unit] = derive_unit_energies(unit_spectra(g, run.spectra, unit), bins, peaks_from, peaks_to);
    });
    for (std::size_t unit = 0; unit < units; ++unit) {
        std::vector<double> ratios;
        const std::size_t first = out.photopeaks.size();
        for (std::size_t local = 0; local < before[unit].crystals.size(); ++local) {
            const CrystalPeak& a = before[unit].crystals[local];
            const CrystalPeak& b = after[unit].crystals[local];
            out.lost_peaks.push_back(a.state == PeakState::fitted && b.state == PeakState::no_peak);
            out.photopeaks.emplace_back();
            out.resolutions.emplace_back();
            if (a.state != PeakState::fitted || b.state != PeakState::fitted) continue;
            out.photopeaks.back() = {b.peak.place / a.peak.place - 1,
                                     std::hypot(a.peak.error / a.peak.place, b.peak.error / b.peak.place)};
            ratios.push_back(b.peak.sigma / b.peak.place / (a.peak.sigma / a.peak.place) - 1);
            out.resolutions.back().size = ratios.back();
        }
        // The error of a width is that which the widths of the unit show.
        const double middle = median(ratios);
        for (double& ratio : ratios)
            ratio = std::abs(ratio - middle);
        const double error = 1.4826 * median(ratios);
        for (std::size_t i = first; i < out.resolutions.size() && error > 0; ++i)
            if (out.photopeaks[i].known()) out.resolutions[i].error = error;
    }
}

void find_spots(const DailyRun& reference, const DailyRun& run, DetectorChanges& out) {
    const FloodShape shape = flood_shape(run.scanner.geometry);
    out.spots.resize(run.sums.units.size());
    for_each_unit("flood maps", out.spots.size(), [&](std::size_t unit) {
        const auto map = [&](const DailyRun& of) {
            return std::span(of.spectra.floods).subspan(unit * shape.positions(), shape.positions());
        };
        if (const auto shift = flood_shift(shape, map(reference), map(run)))
            out.spots[unit] = {shift->largest, shift->error};
    });
}

/// Times of modules, ns, and their errors: unknown with few true prompts.
std::vector<Change> times_of(const DailyRun& run) {
    const daemon::ModuleTable& modules = run.sums.modules;
    std::vector<double> differences;
    daemon::ModuleSums all;
    for (const daemon::ModuleSums& m : modules) {
        differences.push_back(m.dt);
        all += m;
    }
    const double tick_ns = run.scanner.tick_ps * 1e-3;
    // That of a few ends of one module says little, so it counts as at least that of all modules.
    const double spread_of_all = all.ends > 0 ? std::max(all.dt_squared / all.ends, 1.0) : 1.0;
    const std::vector<double> ticks = module_times(run.module_true, differences);
    std::vector<Change> times(modules.size());
    for (std::size_t bdm = 0; bdm < modules.size(); ++bdm) {
        const daemon::ModuleSums& m = modules[bdm];
        if (!m.has_trues() || m.ends < enough_ends) continue;
        const double spread = std::max(spread_of_all, m.dt_squared / m.ends);
        times[bdm] = {ticks[bdm] * tick_ns, std::sqrt(m.ends * spread) / m.trues * tick_ns};
    }
    return times;
}

void find_times(const DailyRun& reference, const DailyRun& run, DetectorChanges& out) {
    const std::vector<Change> before = times_of(reference);
    out.times = times_of(run);
    std::vector<double> changes;
    for (std::size_t bdm = 0; bdm < out.times.size(); ++bdm) {
        Change& change = out.times[bdm];
        change.size -= before[bdm].size;
        change.error = std::hypot(change.error, before[bdm].error);
        if (change.known()) changes.push_back(change.size);
    }
    const double common = median(std::move(changes));
    for (Change& change : out.times)
        change.size -= common;
}

/// How many prompts a module has for what its partners let expect, so that a module that misses them is told
/// from its partners; divided by its singles.
void find_prompts(const DailyRun& reference, const DailyRun& run, DetectorChanges& out) {
    const daemon::ModuleTable& modules = run.sums.modules;
    const std::size_t n = modules.size();
    derive::FanCounts counts;
    for (const daemon::ModuleSums& m : modules) {
        counts.net.push_back(m.trues);
        counts.variance.push_back(m.ends);
    }
    const auto expected = [&](std::span<const double> weights, std::span<double> sums) {
        for (std::size_t a = 0; a < n; ++a) {
            sums[a] = 0;
            for (std::size_t b = 0; b < n; ++b)
                sums[a] += reference.module_true[a * n + b] * weights[b];
        }
    };
    derive::EfficiencyOptions options;
    options.most_steps = 500;
    const derive::Efficiencies found = derive::crystal_efficiencies(counts, expected, options);
    const std::size_t in_module = out.singles.size() / n;
    std::vector<double> per_single(n);
    for (std::size_t bdm = 0; bdm < n; ++bdm) {
        double sum = 0;
        double known = 0;
        for (std::size_t i = bdm * in_module; i < (bdm + 1) * in_module; ++i) {
            if (!out.singles[i].known()) continue;
            sum += std::min(1 + out.singles[i].size, most_singles);
            known += 1;
        }
        // Of a module that counts next to nothing, nothing more is known.
        per_single[bdm] = sum > silent_share * known ? found.efficiency[bdm] * known / sum : 0;
    }
    std::vector<double> counted;
    std::vector<double> growth;
    for (std::size_t bdm = 0; bdm < n; ++bdm) {
        const daemon::ModuleSums& before = reference.sums.modules[bdm];
        if (per_single[bdm] > 0) counted.push_back(per_single[bdm]);
        if (before.trues > 0) growth.push_back(modules[bdm].trues / before.trues);
    }
    const double usual = median(std::move(counted));
    const double usual_growth = median(std::move(growth));
    out.prompts.resize(n);
    for (std::size_t bdm = 0; bdm < n && usual > 0 && usual_growth > 0; ++bdm) {
        const daemon::ModuleSums& before = reference.sums.modules[bdm];
        if (per_single[bdm] <= 0 || !before.has_trues() || before.ends < enough_ends) continue;
        // By the prompts of both if nothing has changed.
        out.prompts[bdm] = {per_single[bdm] / usual - 1,
                            std::sqrt(before.ends * (1 + 1 / usual_growth)) / before.trues};
    }
}

}  // namespace

Change median_of(std::span<const Change> changes) {
    std::vector<double> sizes;
    double variance = 0;
    for (const Change& change : changes) {
        if (!change.known()) continue;
        sizes.push_back(change.size);
        variance += change.error * change.error;
    }
    const std::size_t known = sizes.size();
    if (known == 0 || 2 * known < changes.size()) return {};
    // The median of many is by sqrt(pi / 2) less certain than their mean.
    const double wider = known > 2 ? std::numbers::pi / 2 : 1;
    const auto n = static_cast<double>(known);
    return {median(std::move(sizes)), std::sqrt(wider * variance) / n};
}

DetectorChanges changes_between(const DailyRun& reference, const DailyRun& run) {
    const double scale = scale_of(reference, run);
    if (!(scale > 0))
        throw config::Error(run.directory.string() +
                            ": expected singles in at least half of the detector units that have some in " +
                            reference.directory.string());
    DetectorChanges out;
    find_singles(reference, run, scale, out);
    find_photopeaks(reference, run, out);
    find_spots(reference, run, out);
    find_times(reference, run, out);
    find_prompts(reference, run, out);
    return out;
}

}  // namespace petacq::petcal

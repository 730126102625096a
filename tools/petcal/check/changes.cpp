#include "tools/petcal/check/changes.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <tuple>
#include <utility>

#include "config/base/error.hpp"
#include "config/energy_bins.hpp"
#include "config/median.hpp"
#include "config/scanner/arrangement.hpp"
#include "tools/petcal/base/units.hpp"
#include "tools/petcal/check/module_times.hpp"
#include "tools/petcal/estimate/flood_shift.hpp"
#include "tools/petcal/estimate/photopeak.hpp"
#include "tools/petcal/estimate/unit_energies.hpp"

namespace petacq::petcal {

namespace {

/// Of the singles that a unit should have. As the daemon does: a source that moves leaves more.
constexpr double silent_share = 0.3;
/// Ends of prompts. The mean of as many is normally distributed.
constexpr double enough_ends = 30;
/// A module with a smaller part of its prompts is left out where those of its partners are expected.
constexpr double min_partner = 0.5;
/// A crystal that has changed by more is dead or noisy.
constexpr double other_crystal = 0.5;
/// There are no pairs to be expected.
constexpr double no_growth = -1;

/// Singles of the run for each one of the reference, in the median unit.
double scale_of(const DailyRun& reference, const DailyRun& run) {
    std::vector<double> ratios;
    for (std::size_t unit = 0; unit < run.sums.units.size(); ++unit) {
        const double before = reference.sums.units[unit].singles;
        if (before > 0) ratios.push_back(run.sums.units[unit].singles / before);
    }
    return config::median(std::move(ratios));
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

/// The same everywhere, and a wave around the ring.
Eigen::Vector3d wave_at(double angle) {
    return {1, std::cos(angle), std::sin(angle)};
}

/// Modules around the axis at one place along it, and where.
struct ModuleRing {
    std::vector<std::size_t> modules;
    std::vector<double> angles;
};

/// Of the long form, a BDM lies where the module of its first crystal does; of one ring are those of one type
/// and name.
std::vector<ModuleRing> module_rings(const config::Scanner& scanner) {
    const config::Geometry& g = scanner.geometry;
    std::vector<ModuleRing> rings;
    if (scanner.is_ring()) {
        for (std::size_t bdm = 0; bdm < g.bdm_count; ++bdm) {
            const std::size_t in_ring = g.modules_in_ring();
            if (bdm % in_ring == 0) rings.emplace_back();
            rings.back().modules.push_back(bdm);
            rings.back().angles.push_back(2 * std::numbers::pi * static_cast<double>(bdm % in_ring) /
                                          static_cast<double>(in_ring));
        }
        return rings;
    }
    const config::Arrangement& a = *scanner.arrangement;
    std::map<std::tuple<std::uint32_t, std::string, long>, ModuleRing> found;
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm) {
        const std::size_t first = first_of_unit(g, std::size_t{bdm} * g.du_count);
        if (first == first_of_unit(g, (std::size_t{bdm} + 1) * g.du_count)) continue;
        const config::Module& m = a.modules()[a.address(g.channel_map->crystals[first]).module];
        ModuleRing& ring = found[{m.type, m.name, std::lround(m.front_mm[2])}];
        ring.modules.push_back(bdm);
        ring.angles.push_back(std::atan2(m.front_mm[1], m.front_mm[0]));
    }
    rings.reserve(found.size());
    for (auto& [unused, ring] : found)
        rings.push_back(std::move(ring));
    return rings;
}

/// The pattern that a source makes which has moved: singles rise towards it. Least absolute deviations, by
/// weights; a few modules that have changed do not move it. `values`: around a ring.
Eigen::Vector3d ring_pattern(const std::vector<Change>& values, const std::vector<double>& angles) {
    constexpr int rounds = 30;
    Eigen::Vector3d pattern = Eigen::Vector3d::Zero();
    for (int round = 0; round < rounds; ++round) {
        Eigen::Matrix3d matrix = Eigen::Matrix3d::Zero();
        Eigen::Vector3d right = Eigen::Vector3d::Zero();
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (!values[i].known()) continue;
            const Eigen::Vector3d at = wave_at(angles[i]);
            const double off = std::abs(values[i].size - at.dot(pattern));
            const double weight = round == 0 ? 1 : 1 / std::max(off, values[i].error / 4);
            matrix += weight * at * at.transpose();
            right += weight * values[i].size * at;
        }
        pattern = matrix.ldlt().solve(right);
    }
    return pattern;
}

void find_ring_efficiencies(const ModuleRing& places, std::vector<Change>& modules) {
    constexpr std::size_t least = 8;
    std::vector<Change> ring;
    for (const std::size_t module : places.modules)
        ring.push_back(modules[module]);
    const auto known = static_cast<std::size_t>(
        std::count_if(ring.begin(), ring.end(), [](const Change& c) { return c.known(); }));
    if (known < least) {
        for (const std::size_t module : places.modules)
            modules[module] = Change();
        return;
    }
    const Eigen::Vector3d pattern = ring_pattern(ring, places.angles);
    const double wider = std::sqrt(1 + 3 / static_cast<double>(known));
    for (std::size_t i = 0; i < ring.size(); ++i) {
        if (!ring[i].known()) continue;
        const double usual = 1 + wave_at(places.angles[i]).dot(pattern);
        modules[places.modules[i]] =
            usual > 0 ? Change{(1 + ring[i].size) / usual - 1, wider * ring[i].error / usual} : Change();
    }
}

void find_efficiencies(const DailyRun& reference, const DailyRun& run, double scale, DetectorChanges& out) {
    const config::Geometry& g = run.scanner.geometry;
    const auto crystals = daemon::crystals_by_unit(g);
    for (std::size_t bdm = 0; bdm < g.bdm_count; ++bdm) {
        double before = 0;
        double after = 0;
        for (std::size_t unit = bdm * g.du_count; unit < (bdm + 1) * g.du_count; ++unit) {
            if (out.silent[unit]) continue;
            for (std::size_t i = first_of_unit(g, unit); i < first_of_unit(g, unit + 1); ++i) {
                const Change& c = out.singles[i];
                if (!c.known() || std::abs(c.size) > std::max(other_crystal, 6.5 * c.error)) continue;
                before += scale * reference.singles[crystals[i]];
                after += run.singles[crystals[i]];
            }
        }
        out.efficiencies.emplace_back();
        if (before >= enough_ends && after >= enough_ends)
            out.efficiencies.back() = {after / before - 1,
                                       after / before * std::sqrt(1 / after + scale / before)};
    }
    for (const ModuleRing& ring : module_rings(run.scanner))
        find_ring_efficiencies(ring, out.efficiencies);
}

/// Sigma / place of units and their errors. The background below the peak, which a single unit fixes badly,
/// is that of the median unit.
std::vector<Change> resolutions_of(const std::vector<UnitEnergies>& units) {
    std::vector<double> steps;
    for (const UnitEnergies& unit : units)
        if (unit.common) steps.push_back(step_of(*unit.common));
    const PeakShape shape{0, config::median(std::move(steps))};
    std::vector<Change> out(units.size());
    for (std::size_t i = 0; i < units.size(); ++i) {
        if (!units[i].common) continue;
        if (const auto peak = fit_photopeak(units[i].sum, units[i].common->place, shape))
            out[i] = {peak->sigma / peak->place, peak->sigma_error / peak->place};
    }
    return out;
}

void find_resolutions(const std::vector<UnitEnergies>& before, const std::vector<UnitEnergies>& after,
                      DetectorChanges& out) {
    const std::vector<Change> then = resolutions_of(before);
    out.resolutions = resolutions_of(after);
    for (std::size_t i = 0; i < then.size(); ++i) {
        Change& now = out.resolutions[i];
        if (!now.known() || !then[i].known()) {
            now = {};
            continue;
        }
        const double ratio = now.size / then[i].size;
        now = {ratio - 1, ratio * std::hypot(now.error / now.size, then[i].error / then[i].size)};
    }
}

void find_photopeaks(const DailyRun& reference, const DailyRun& run, DetectorChanges& out) {
    constexpr std::size_t bins = config::energy_bins;
    const config::Geometry& g = run.scanner.geometry;
    const std::size_t units = run.sums.units.size();
    std::vector<UnitEnergies> before(units);
    std::vector<UnitEnergies> after(units);
    for_each_unit("photopeaks", units, [&](std::size_t unit) {
        if (g.crystals_of_unit(static_cast<std::uint32_t>(unit)) == 0) return;
        before[unit] =
            derive_unit_energies(unit_spectra(g, reference.spectra, unit), bins, peaks_from, peaks_to);
        after[unit] = derive_unit_energies(unit_spectra(g, run.spectra, unit), bins, peaks_from, peaks_to);
    });
    for (std::size_t unit = 0; unit < units; ++unit) {
        for (std::size_t local = 0; local < before[unit].crystals.size(); ++local) {
            const CrystalPeak& a = before[unit].crystals[local];
            const CrystalPeak& b = after[unit].crystals[local];
            out.lost_peaks.push_back(a.state == PeakState::fitted && b.state == PeakState::no_peak);
            out.photopeaks.emplace_back();
            if (a.state != PeakState::fitted || b.state != PeakState::fitted) continue;
            out.photopeaks.back() = {b.peak.place / a.peak.place - 1,
                                     std::hypot(a.peak.error / a.peak.place, b.peak.error / b.peak.place)};
        }
    }
    find_resolutions(before, after, out);
}

void find_spots(const DailyRun& reference, const DailyRun& run, DetectorChanges& out) {
    out.spots.resize(run.sums.units.size());
    for_each_unit("flood maps", out.spots.size(), [&](std::size_t unit) {
        const auto number = static_cast<std::uint32_t>(unit);
        if (run.scanner.geometry.crystals_of_unit(number) == 0) return;
        const FloodShape shape = flood_shape(run.scanner, number);
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
    const std::size_t n = modules.size();
    std::vector<double> pairs = run.module_true;
    std::vector<double> differences(n);
    daemon::ModuleSums all;
    for (std::size_t a = 0; a < n; ++a) {
        if (modules[a].has_trues() && modules[a].ends >= enough_ends) {
            differences[a] = modules[a].dt;
            all += modules[a];
            continue;
        }
        for (std::size_t b = 0; b < n; ++b)
            pairs[a * n + b] = pairs[b * n + a] = 0;
    }
    const ModuleTimes found = module_times(pairs, differences);
    // What is left of the squares of all pairs, of which each has two ends. Random ones do not move the
    // times, but they make them less certain.
    double squares = all.dt_squared / 2;
    for (std::size_t a = 0; a < n; ++a)
        squares += found.times[a] * differences[a];
    const double spread = all.ends > 0 ? std::max(squares / (all.ends / 2), 1.0) : 1;
    const double tick_ns = run.scanner.tick_ps * 1e-3;
    std::vector<Change> times(n);
    for (std::size_t a = 0; a < n; ++a) {
        const double randoms = all.trues > 0 ? all.ends / all.trues : 1;
        times[a] = {found.times[a] * tick_ns, std::sqrt(found.variance[a] * randoms * spread) * tick_ns};
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
    const double common = config::median(std::move(changes));
    for (Change& change : out.times)
        change.size -= common;
}

/// Singles of each module for each one of the reference, at most 1: noise makes singles and no prompts.
std::vector<double> singles_left(const config::Geometry& g, const DetectorChanges& changes) {
    std::vector<double> left(g.bdm_count, 1);
    for (std::size_t bdm = 0; bdm < left.size(); ++bdm) {
        double sum = 0;
        double known = 0;
        for (const Change& single : of_module(g, changes.singles, bdm)) {
            if (!single.known()) continue;
            sum += std::min(1 + single.size, 1.0);
            known += 1;
        }
        if (known > 0) left[bdm] = sum / known;
    }
    return left;
}

/// True prompts of modules for what their singles and their partners let expect. The module that misses most
/// comes first, and is then no partner of the others.
void find_prompts(const DailyRun& reference, const DailyRun& run, DetectorChanges& out) {
    const daemon::ModuleTable& before = reference.sums.modules;
    const std::size_t n = before.size();
    const std::vector<double> left = singles_left(run.scanner.geometry, out);
    std::vector<bool> partner(n, true);
    std::vector<double> growth(n);
    const auto measure = [&](std::size_t a) {
        double trues = 0;
        double expected = 0;
        for (std::size_t b = 0; b < n; ++b) {
            if (!partner[b]) continue;
            trues += run.module_true[a * n + b];
            expected += left[a] * left[b] * reference.module_true[a * n + b];
        }
        growth[a] = expected > 0 ? trues / expected : no_growth;
    };
    std::vector<double> known;
    for (std::size_t a = 0; a < n; ++a) {
        measure(a);
        if (growth[a] != no_growth) known.push_back(growth[a]);
    }
    const double usual = config::median(std::move(known));
    out.prompts.resize(n);
    if (!(usual > 0)) return;
    for (;;) {
        std::size_t worst = n;
        for (std::size_t a = 0; a < n; ++a) {
            if (!partner[a]) continue;
            measure(a);
            if (growth[a] != no_growth && (worst == n || growth[a] < growth[worst])) worst = a;
        }
        if (worst == n || growth[worst] > min_partner * usual) break;
        partner[worst] = false;
    }
    for (std::size_t a = 0; a < n; ++a) {
        if (growth[a] == no_growth || !before[a].has_trues() || before[a].ends < enough_ends) continue;
        // By the prompts of both if nothing has changed.
        const double error = std::sqrt(before[a].ends * (1 + 1 / usual)) / before[a].trues;
        if (left[a] > silent_share) out.prompts[a] = {growth[a] / usual - 1, error};
        // Of the peak in time, only the edge lies in the coincidence window.
        if (growth[a] < min_partner * usual) out.times[a] = {};
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
    const double error = std::sqrt(wider * variance) / static_cast<double>(known);
    std::sort(sizes.begin(), sizes.end());
    // Of an even number: the smaller change of the middle two, so that half of the parts do not stand for
    // all.
    const double high = sizes[known / 2];
    const double low = sizes[(known - 1) / 2];
    return {std::abs(low) < std::abs(high) ? low : high, error};
}

DetectorChanges changes_between(const DailyRun& reference, const DailyRun& run) {
    const double scale = scale_of(reference, run);
    if (!(scale > 0))
        throw config::Error(run.directory.string() +
                            ": expected singles in at least half of the detector units that have some in " +
                            reference.directory.string());
    DetectorChanges out;
    find_singles(reference, run, scale, out);
    find_efficiencies(reference, run, scale, out);
    find_photopeaks(reference, run, out);
    find_spots(reference, run, out);
    find_times(reference, run, out);
    find_prompts(reference, run, out);
    return out;
}

}  // namespace petacq::petcal

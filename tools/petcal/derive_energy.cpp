#include "tools/petcal/derive_energy.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "config/calibration.hpp"
#include "config/error.hpp"
#include "config/spectra.hpp"
#include "tools/petcal/derive/unit_energies.hpp"
#include "tools/petcal/refusals.hpp"
#include "tools/petcal/report/reports.hpp"
#include "tools/petcal/results.hpp"
#include "tools/petcal/units.hpp"

namespace petacq::petcal {

namespace {

constexpr double peak_keV = 511;  // NOLINT(readability-identifier-naming)

/// Energies belong to the crystal map and the factors with which they were taken.
void check_same_calibration(const DeriveEnergyOptions& o, const config::Spectra& spectra,
                            const config::Calibration& c) {
    const std::string& used = spectra.calibration_sha256;
    if (used == c.sha256) return;
    throw config::Error(o.spectra.string() + ": expected spectra taken with the calibration " +
                        o.calibration.string() + " (SHA-256 " + c.sha256 + "), found " +
                        (used.empty() ? "no attribute calibration_sha256, which names the calibration"
                                      : "those of another one (calibration_sha256 " + used + ")"));
}

EnergyResult energy_result(const config::Geometry& g, const config::Calibration& old,
                           const std::vector<UnitEnergies>& units) {
    constexpr double width = config::Spectra::energy_bin_keV;
    EnergyResult r;
    r.energy_factor = old.energy_factor;
    r.bins = old.bins;
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        for (std::size_t local = 0; local < g.crystals_per_du(); ++local) {
            const CrystalPeak& c = units[unit].crystals[local];
            const bool fitted = c.state == PeakState::fitted;
            const bool kept = !units[unit].refused.empty();
            EnergyState state = fitted ? EnergyState::fitted : EnergyState::unit_median;
            if (kept) state = EnergyState::kept;
            const double place = width * (fitted ? c.peak.place : units[unit].median_place);
            constexpr double fwhm = 2.354820045;  // of a Gaussian, in standard deviations
            r.state.push_back(static_cast<std::uint8_t>(state));
            r.peak_keV.push_back(fitted ? static_cast<float>(place) : 0);
            r.resolution.push_back(fitted ? static_cast<float>(fwhm * c.peak.sigma / c.peak.place) : 0);
            if (kept) continue;
            const std::size_t first = (unit * g.crystals_per_du() + local) * old.bins;
            for (std::size_t bin = first; bin < first + old.bins; ++bin)
                r.energy_factor[bin] = static_cast<float>(old.energy_factor[bin] * (peak_keV / place));
        }
    }
    return r;
}

void print_energies(const config::Geometry& g, const std::vector<UnitEnergies>& units) {
    std::size_t fitted = 0;
    double resolution = 0;
    double error = 0;
    double change = 0;
    std::vector<std::string> without;
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        if (!units[unit].refused.empty()) continue;
        for (std::size_t local = 0; local < units[unit].crystals.size(); ++local) {
            const CrystalPeak& c = units[unit].crystals[local];
            if (c.state == PeakState::fitted) {
                ++fitted;
                resolution += c.peak.sigma / c.peak.place;
                error += c.peak.error / c.peak.place;
                const double keV = config::Spectra::energy_bin_keV * c.peak.place;  // NOLINT
                change += std::pow(peak_keV / keV - 1, 2);
                continue;
            }
            without.push_back(unit_name(g, unit) + ", crystal " + std::to_string(local) +
                              (c.state == PeakState::few_counts ? ": too few counts" : ": no clear peak"));
        }
    }
    const auto n = static_cast<double>(fitted);
    std::printf("photopeaks          %zu of %u crystals\n", fitted, g.crystal_count());
    std::printf("resolution          %.1f %% (FWHM, mean)\n", 235.482 * resolution / n);
    std::printf("error of a peak     %.2f %% (by counts, mean)\n", 100 * error / n);
    std::printf("change of factors   %.2f %% (rms)\n", 100 * std::sqrt(change / n));
    if (without.empty()) return;
    std::printf("changed by the median of their unit, as they have no photopeak: %zu\n", without.size());
    for (const std::string& line : without)
        std::printf("  %s\n", line.c_str());
}

}  // namespace

void derive_energy(const config::Scanner& scanner, const DeriveEnergyOptions& o) {
    const config::Geometry& g = scanner.geometry;
    const config::Calibration old = config::load_calibration(o.calibration, g);
    const config::Spectra spectra = config::load_spectra(o.spectra, g);
    check_same_calibration(o, spectra, old);
    std::vector<UnitEnergies> units(std::size_t{g.bdm_count} * g.du_count);
    for_each_unit("photopeaks", units.size(), [&](std::size_t unit) {
        units[unit] = derive_unit_energies(unit_spectra(g, spectra, unit), config::Spectra::energy_bins,
                                           peaks_from, peaks_to);
    });
    std::vector<std::string> refused;
    refused.reserve(units.size());
    for (const UnitEnergies& unit : units)
        refused.push_back(unit.refused);
    if (!o.report.empty()) write_energy_report(o.report, scanner, spectra, units);
    check_refusals(g, refused, o.partial);
    EnergyResult result = energy_result(g, old, units);
    result.map_sha256 = map_checksum(old.position_table);
    result.origin = made_by("petcal derive energy");
    result.origin["scanner"] = scanner.name;
    result.origin["spectra_sha256"] = config::sha256_of_file(o.spectra);
    result.origin["calibration_sha256"] = old.sha256;
    save_energy(o.output, g, result);
    print_energies(g, units);
}

}  // namespace petacq::petcal

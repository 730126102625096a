#include "tools/petcal/steps/derive_energy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/base/answer.hpp"
#include "config/base/error.hpp"
#include "config/calibration.hpp"
#include "config/spectra.hpp"
#include "tools/petcal/base/units.hpp"
#include "tools/petcal/report/reports.hpp"
#include "tools/petcal/results/energy_factors.hpp"
#include "tools/petcal/results/results.hpp"
#include "tools/petcal/steps/refusals.hpp"

namespace petacq::petcal {

namespace {

/// Energies belong to the crystal map and the factors with which they were taken.
config::Spectra load_spectra_of(const DeriveEnergyOptions& o, const std::filesystem::path& file,
                                const config::Geometry& g, const config::Calibration& c) {
    config::Spectra spectra = config::load_spectra(file, g);
    const std::string& used = spectra.calibration_sha256;
    if (used == c.sha256) return spectra;
    throw config::Error(file.string() + ": expected spectra taken with the calibration " +
                        o.calibration.string() + " (SHA-256 " + c.sha256 + "), found " +
                        (used.empty() ? "no attribute calibration_sha256, which names the calibration"
                                      : "those of another one (calibration_sha256 " + used + ")"));
}

/// The spectra reach up to 1024 keV. Lines closer together than that say little, and their peaks overlap.
void check_second_line(const DeriveEnergyOptions& o) {
    constexpr double least = 100;
    constexpr double most = 900;
    constexpr double apart = 0.15;
    const double keV = o.second_line_keV;  // NOLINT(readability-identifier-naming)
    if (o.second.empty() != (keV == 0))
        throw config::Error("a second line: expected --second and --second-line-keV together");
    if (o.second.empty()) return;
    if (keV >= least && keV <= most && std::abs(keV / first_line_keV - 1) >= apart) return;
    throw config::Error("--second-line-keV: expected 100 to 900 keV, and 15 % or more from 511 keV; found " +
                        std::to_string(keV));
}

std::vector<UnitLines> derive_lines(const config::Geometry& g, const config::Spectra& spectra,
                                    const std::optional<config::Spectra>& second,
                                    double second_keV) {  // NOLINT
    std::vector<UnitLines> units(std::size_t{g.bdm_count} * g.du_count);
    for_each_unit("photopeaks", units.size(), [&](std::size_t unit) {
        constexpr std::size_t bins = config::energy_bins;
        if (g.crystals_of_unit(static_cast<std::uint32_t>(unit)) == 0) return;
        UnitLines& u = units[unit];
        u.first = derive_unit_energies(unit_spectra(g, spectra, unit), bins, peaks_from, peaks_to);
        if (!second) return;
        u.second =
            derive_second_line(unit_spectra(g, *second, unit), bins, u.first, second_keV / first_line_keV);
        if (!u.second.refused.empty()) u.second.refused = "at the second line: " + u.second.refused;
    });
    return units;
}

config::Written figures_of(const config::Geometry& g, const std::vector<UnitLines>& units) {
    std::size_t fitted = 0;
    double resolution = 0;
    double error = 0;
    double change = 0;
    std::vector<std::string> without;
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        if (!units[unit].refused().empty()) continue;
        for (std::size_t local = 0; local < units[unit].first.crystals.size(); ++local) {
            const CrystalPeak& c = units[unit].first.crystals[local];
            if (c.state == PeakState::fitted) {
                ++fitted;
                resolution += c.peak.sigma / c.peak.place;
                error += c.peak.error / c.peak.place;
                const double keV = config::energy_bin_keV * c.peak.place;  // NOLINT
                change += std::pow(first_line_keV / keV - 1, 2);
                continue;
            }
            without.push_back(unit_name(g, unit) + ", crystal " + std::to_string(local) +
                              (c.state == PeakState::few_counts ? ": too few counts" : ": no clear peak"));
        }
    }
    const auto n = static_cast<double>(fitted);
    config::Written written;
    written.facts = {{"crystals", g.crystal_count()},
                     {"photopeaks", fitted},
                     {"resolution_percent", 235.482 * resolution / n},
                     {"peak_error_percent", 100 * error / n},
                     {"change_percent", 100 * std::sqrt(change / n)},
                     {"without_photopeak", without}};
    written.text = fmt::format(
        "photopeaks          {} of {} crystals\n"
        "resolution          {:.1f} % (FWHM, mean)\n"
        "error of a peak     {:.2f} % (by counts, mean)\n"
        "change of factors   {:.2f} % (rms)\n",
        fitted, g.crystal_count(), 235.482 * resolution / n, 100 * error / n, 100 * std::sqrt(change / n));
    if (!without.empty()) {
        written.text += fmt::format("changed by the median of their unit, as they have no photopeak: {}\n",
                                    without.size());
    }
    for (const std::string& line : without)
        written.text += "  " + line + '\n';
    return written;
}

void add_second_line(const config::Geometry& g, const config::Calibration& old,
                     const std::vector<UnitLines>& units, double keV,  // NOLINT
                     config::Written& written) {
    double fitted = 0;
    double sum = 0;
    double squares = 0;
    double error = 0;
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        if (!units[unit].refused().empty()) continue;
        for (std::size_t local = 0; local < units[unit].first.crystals.size(); ++local) {
            const auto found = nonlinearity_of(factors_of(g, old, unit, local), units[unit], local, keV);
            if (!found) continue;
            fitted += 1;
            sum += found->deviation;
            squares += found->deviation * found->deviation;
            error += found->error;
        }
    }
    const double mean = sum / fitted;
    const double spread = std::sqrt(std::max(0.0, squares / fitted - mean * mean));
    written.facts["second_line"] = {{"keV", keV},
                                    {"crystals", static_cast<std::uint64_t>(fitted)},
                                    {"nonlinearity_percent", 100 * mean},
                                    {"nonlinearity_spread_percent", 100 * spread},
                                    {"error_percent", 100 * error / fitted}};
    written.text += fmt::format(
        "second line         {:.0f} of {} crystals at {:.1f} keV\n"
        "non-linearity       {:+.2f} % (mean), {:.2f} % (spread): ADC counts per keV there and at 511 keV\n"
        "error of it         {:.2f} % (by counts, mean)\n",
        fitted, g.crystal_count(), keV, 100 * mean, 100 * spread, 100 * error / fitted);
}

}  // namespace

config::Written derive_energy(const config::Scanner& scanner, const DeriveEnergyOptions& o) {
    const config::Geometry& g = scanner.geometry;
    check_second_line(o);
    const config::Calibration old = config::load_calibration(o.calibration, g);
    const config::Spectra spectra = load_spectra_of(o, o.spectra, g, old);
    std::optional<config::Spectra> second;
    if (!o.second.empty()) second = load_spectra_of(o, o.second, g, old);
    const std::vector<UnitLines> units = derive_lines(g, spectra, second, o.second_line_keV);
    std::vector<std::string> refused;
    refused.reserve(units.size());
    for (const UnitLines& unit : units)
        refused.push_back(unit.refused());
    if (!o.report.empty()) {
        const auto lines =
            second ? std::optional<SecondLine>({*second, old, o.second_line_keV}) : std::nullopt;
        write_energy_report(o.report, scanner, spectra, units, lines);
    }
    std::vector<std::string> printed = check_refusals(g, refused, o.partial);
    EnergyResult result = energy_result(g, old, units, o.second_line_keV);
    result.map_sha256 = map_checksum(g, old.position_table);
    result.origin = made_by("petcal derive energy");
    result.origin["scanner"] = scanner.name;
    result.origin["spectra_sha256"] = config::sha256_of_file(o.spectra);
    result.origin["calibration_sha256"] = old.sha256;
    if (second) {
        result.origin["second_sha256"] = config::sha256_of_file(o.second);
        result.origin["second_line_keV"] = std::to_string(o.second_line_keV);
    }
    save_energy(o.output, g, result);
    config::Written written = figures_of(g, units);
    if (second) add_second_line(g, old, units, o.second_line_keV, written);
    written.printed = std::move(printed);
    return written;
}

}  // namespace petacq::petcal

#include <fmt/printf.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "config/energy_bins.hpp"
#include "daemon/system/file.hpp"
#include "tools/petcal/base/units.hpp"
#include "tools/petcal/report/figures.hpp"
#include "tools/petcal/report/reports.hpp"
#include "tools/report/figures.hpp"
#include "tools/report/page.hpp"

namespace petacq::petcal {

namespace {

constexpr std::size_t spectrum_bins = config::energy_bins;
constexpr double keV_per_bin = config::energy_bin_keV;  // NOLINT(readability-identifier-naming)

std::span<const std::uint32_t> spectrum_of(const config::Geometry& g, const config::Spectra& spectra,
                                           std::size_t unit, std::size_t local) {
    const auto number = static_cast<std::uint32_t>(unit);
    const std::size_t crystal =
        g.crystal(number / g.du_count, number % g.du_count, static_cast<std::uint32_t>(local));
    return std::span(spectra.energies).subspan(crystal * spectrum_bins, spectrum_bins);
}

/// The sums of all spectra by the energies in use, and by those that put every photopeak at 511 keV.
std::string sums_figure(const config::Geometry& g, const config::Spectra& spectra,
                        const std::vector<UnitLines>& units) {
    Curve before(spectrum_bins);
    Curve after(spectrum_bins);
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        for (std::size_t local = 0; local < units[unit].first.crystals.size(); ++local) {
            const CrystalPeak& c = units[unit].first.crystals[local];
            if (c.state != PeakState::fitted) continue;
            const auto spectrum = spectrum_of(g, spectra, unit, local);
            const double scale = first_line_keV / keV_per_bin / c.peak.place;
            for (std::size_t bin = 0; bin < spectrum_bins; ++bin) {
                before[bin] += spectrum[bin];
                const double place = std::min((static_cast<double>(bin) + 0.5) * scale, spectrum_bins - 1.0);
                after[static_cast<std::size_t>(place)] += spectrum[bin];
            }
        }
    }
    return spectrum_figure(after, &before,
                           "Sum of the crystals with a photopeak: before (orange) and after (blue)");
}

std::string crystal_figures(const config::Geometry& g, const config::Spectra& spectra,
                            const std::vector<UnitLines>& units) {
    constexpr std::size_t most = 60;
    std::size_t count = 0;
    std::string figures;
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        for (std::size_t local = 0; local < units[unit].first.crystals.size(); ++local) {
            const CrystalPeak& c = units[unit].first.crystals[local];
            if (c.state == PeakState::fitted || ++count > most) continue;
            const auto spectrum = spectrum_of(g, spectra, unit, local);
            figures += spectrum_figure(
                {spectrum.begin(), spectrum.end()}, nullptr,
                unit_name(g, unit) + fmt::sprintf(", crystal %zu: ", local) +
                    (c.state == PeakState::few_counts ? "too few counts in a peak" : "no clear peak"));
        }
    }
    if (count == 0) return "<p>All crystals have a photopeak.</p>\n";
    return fmt::sprintf("<h2>Crystals without a photopeak: %zu</h2>\n", count) +
           (count > most ? fmt::sprintf("<p class=\"muted\">The first %zu.</p>\n", most) : "") +
           "<div class=\"units\">\n" + figures + "</div>\n";
}

/// Sum of the spectra of the second line, a map of the non-linearities, and their figures.
std::string second_line_html(const config::Scanner& scanner, const std::vector<UnitLines>& units,
                             const SecondLine& line) {
    const config::Geometry& g = scanner.geometry;
    Curve sum(spectrum_bins);
    std::vector<double> deviations(g.crystal_count(), no_value);
    std::size_t known = 0;
    double mean = 0;
    double error = 0;
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        for (std::uint32_t local = 0; local < g.crystals_of_unit(static_cast<std::uint32_t>(unit)); ++local) {
            const auto found =
                nonlinearity_of(factors_of(g, line.in_use, unit, local), units[unit], local, line.keV);
            if (!found) continue;
            const auto number = static_cast<std::uint32_t>(unit);
            deviations[g.crystal(number / g.du_count, number % g.du_count, local)] = 100 * found->deviation;
            const auto spectrum = spectrum_of(g, line.spectra, unit, local);
            std::transform(spectrum.begin(), spectrum.end(), sum.begin(), sum.begin(), std::plus<>());
            ++known;
            mean += 100 * found->deviation;
            error += 100 * found->error;
        }
    }
    const double n = static_cast<double>(std::max<std::size_t>(known, 1));
    return fmt::sprintf(
               "<h2>Second line</h2>\n<p>%zu of %u crystals have a photopeak at %.1f keV. Their ADC counts "
               "per "
               "keV differ there from those at 511 keV by %+.2f %% (mean); the counts leave an error of %.2f "
               "%% "
               "for each. The others have the median of their unit.</p>\n<div class=\"units\">\n",
               known, g.crystal_count(), line.keV, mean / n, error / n) +
           spectrum_figure(sum, nullptr, "Sum of these crystals, by the factors in use") +
           crystals_figure(
               scanner, -10, 10, [&](std::uint32_t crystal) { return deviations[crystal]; },
               "Non-linearity: -10 % (dark) to +10 % (bright); black: no second photopeak") +
           "</div>\n";
}

}  // namespace

void write_energy_report(const std::filesystem::path& file, const config::Scanner& scanner,
                         const config::Spectra& spectra, const std::vector<UnitLines>& units,
                         const std::optional<SecondLine>& second) {
    const config::Geometry& g = scanner.geometry;
    std::string body;
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        if (units[unit].refused().empty()) continue;
        body += "<p class=\"bad\">" + report::escaped(unit_name(g, unit) + ": " + units[unit].refused()) +
                "</p>\n";
    }
    body += "<h2>All crystals</h2>\n<div class=\"units\">\n" + sums_figure(g, spectra, units);
    const auto of_peaks = [&](double (*value)(const Photopeak&)) {
        std::vector<double> values(g.crystal_count(), no_value);
        for (std::size_t unit = 0; unit < units.size(); ++unit) {
            for (std::uint32_t local = 0; local < g.crystals_of_unit(static_cast<std::uint32_t>(unit));
                 ++local) {
                const CrystalPeak& c = units[unit].first.crystals[local];
                const auto number = static_cast<std::uint32_t>(unit);
                if (c.state == PeakState::fitted)
                    values[g.crystal(number / g.du_count, number % g.du_count, local)] = value(c.peak);
            }
        }
        return [values = std::move(values)](std::uint32_t crystal) { return values[crystal]; };
    };
    body +=
        crystals_figure(scanner, 400, 620, of_peaks([](const Photopeak& p) { return keV_per_bin * p.place; }),
                        "Photopeak by the factors in use, 400 keV (dark) to 620 keV (bright); black: none. " +
                            crystals_order(scanner));
    body += crystals_figure(scanner, 5, 25,
                            of_peaks([](const Photopeak& p) { return 235.482 * p.sigma / p.place; }),
                            "Resolution (FWHM) at 511 keV, 5 % (dark) to 25 % (bright); black: no photopeak");
    body += "</div>\n";
    if (second) body += second_line_html(scanner, units, *second);
    body += crystal_figures(g, spectra, units);
    daemon::replace_file(file, report::html_of(report::Page{"Photopeaks of " + scanner.name, "", body}));
}

}  // namespace petacq::petcal

#include <fmt/printf.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>

#include "tools/html/escaped.hpp"
#include "tools/petcal/figures.hpp"
#include "tools/petcal/page.hpp"
#include "tools/petcal/report.hpp"
#include "tools/petcal/units.hpp"

namespace petacq::petcal {

namespace {

constexpr std::size_t spectrum_bins = config::Spectra::energy_bins;
constexpr double keV_per_bin = config::Spectra::energy_bin_keV;  // NOLINT(readability-identifier-naming)

using Curve = std::vector<double>;

std::span<const std::uint32_t> spectrum_of(const config::Geometry& g, const config::Spectra& spectra,
                                           std::size_t unit, std::size_t local) {
    const auto number = static_cast<std::uint32_t>(unit);
    const std::size_t crystal =
        g.crystal(number / g.du_count, number % g.du_count, static_cast<std::uint32_t>(local));
    return std::span(spectra.energies).subspan(crystal * spectrum_bins, spectrum_bins);
}

std::string curve_path(const Curve& curve, double most, const char* style) {
    std::string path = fmt::sprintf(R"(<path class="%s" d="M0 100)", style);
    for (std::size_t bin = 0; bin + 1 < curve.size(); ++bin)
        path += fmt::sprintf("L%zu %.1f", bin, 100 - 95 * curve[bin] / most);
    return path + "\"/>";
}

/// Spectra from 0 to 1020 keV, with a line at 511 keV.
std::string spectrum_figure(const Curve& curve, const Curve* other, const std::string& caption) {
    double most = 1;
    for (const Curve* one : {&curve, other})
        if (one != nullptr) most = std::max(most, *std::max_element(one->begin(), one->end() - 1));
    std::string out = R"(<figure><svg viewBox="0 0 255 115" role="img">)";
    out += fmt::sprintf(R"(<path class="axis" d="M0 100H255M%.1f 0V100"/>)", 511 / keV_per_bin);
    out += R"(<text x="128" y="112" text-anchor="middle">511 keV</text>)";
    out += curve_path(curve, most, "curve");
    if (other != nullptr) out += curve_path(*other, most, "other");
    return out + "</svg><figcaption>" + caption + "</figcaption></figure>\n";
}

/// All crystals, one row for each ring; black at `low`, white at `high`.
std::string crystals_figure(const config::Geometry& g, const std::vector<UnitEnergies>& units, double low,
                            double high, const std::function<double(const Photopeak&)>& value,
                            const std::string& caption) {
    std::vector<double> values(g.crystal_count(), -1);
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local) {
            const CrystalPeak& c = units[unit].crystals[local];
            if (c.state != PeakState::fitted) continue;
            const auto number = static_cast<std::uint32_t>(unit);
            values[g.crystal(number / g.du_count, number % g.du_count, local)] = value(c.peak);
        }
    }
    return picture_figure(grey_picture(g.crystals_in_ring(), g.rings(), values, low, high), caption);
}

/// The sums of all spectra by the energies in use, and by those that put every photopeak at 511 keV.
std::string sums_figure(const config::Geometry& g, const config::Spectra& spectra,
                        const std::vector<UnitEnergies>& units) {
    Curve before(spectrum_bins);
    Curve after(spectrum_bins);
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        for (std::size_t local = 0; local < units[unit].crystals.size(); ++local) {
            const CrystalPeak& c = units[unit].crystals[local];
            if (c.state != PeakState::fitted) continue;
            const auto spectrum = spectrum_of(g, spectra, unit, local);
            const double scale = 511 / keV_per_bin / c.peak.place;
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
                            const std::vector<UnitEnergies>& units) {
    constexpr std::size_t most = 60;
    std::size_t count = 0;
    std::string figures;
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        for (std::size_t local = 0; local < units[unit].crystals.size(); ++local) {
            const CrystalPeak& c = units[unit].crystals[local];
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

}  // namespace

void write_energy_report(const std::filesystem::path& file, const config::Scanner& scanner,
                         const config::Spectra& spectra, const std::vector<UnitEnergies>& units) {
    const config::Geometry& g = scanner.geometry;
    std::string body;
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        if (units[unit].refused.empty()) continue;
        body += "<p class=\"bad\">" + escaped(unit_name(g, unit) + ": " + units[unit].refused) + "</p>\n";
    }
    body += "<h2>All crystals</h2>\n<div class=\"units\">\n" + sums_figure(g, spectra, units);
    body += crystals_figure(
        g, units, 400, 620, [](const Photopeak& p) { return keV_per_bin * p.place; },
        "Photopeak by the factors in use, 400 keV (dark) to 620 keV (bright); black: none. One row for each "
        "ring, ring 0 at the top");
    body += crystals_figure(
        g, units, 5, 25, [](const Photopeak& p) { return 235.482 * p.sigma / p.place; },
        "Resolution (FWHM) at 511 keV, 5 % (dark) to 25 % (bright); black: no photopeak");
    body += "</div>\n" + crystal_figures(g, spectra, units);
    write_page(file, "Photopeaks of " + scanner.name, body);
}

}  // namespace petacq::petcal

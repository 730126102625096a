#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "daemon/system/file.hpp"
#include "tools/petcal/base/units.hpp"
#include "tools/petcal/report/figures.hpp"
#include "tools/petcal/report/reports.hpp"
#include "tools/report/figures.hpp"
#include "tools/report/page.hpp"

namespace petacq::petcal {

namespace {

constexpr double lowest = 0.5;  // of the grey scale
constexpr double highest = 1.5;

std::string efficiencies_figure(const config::Scanner& scanner, const normalisation::Normalisation& n) {
    return crystals_figure(
        scanner, lowest, highest,
        [&](std::uint32_t crystal) {
            return n.efficiency[crystal] > 0 ? double{n.efficiency[crystal]} : no_value;
        },
        "Efficiencies, 0.5 (dark) to 1.5 (bright); black: dead. " + crystals_order(scanner));
}

std::string axial_figure(const config::Geometry& g, const normalisation::Normalisation& n) {
    return report::picture_figure(
        report::grey_picture(g.rings(), g.rings(), {n.axial.begin(), n.axial.end()}, lowest, highest),
        "Axial factors, 0.5 (dark) to 1.5 (bright), by the rings of both crystals");
}

/// Modules apart side by side, in each column of a along y and column of b along x.
std::string transaxial_figure(const config::Geometry& g, const normalisation::Normalisation& n) {
    const std::uint32_t columns = g.crystals_per_module_y();
    const auto apart = static_cast<std::uint32_t>(n.transaxial.size() / columns / columns);
    std::vector<double> values;
    for (std::uint32_t a = 0; a < columns; ++a) {
        for (std::uint32_t d = 0; d < apart; ++d) {
            for (std::uint32_t b = 0; b < columns; ++b)
                values.push_back(n.transaxial[(std::size_t{d} * columns + a) * columns + b]);
        }
    }
    return report::picture_figure(
        report::grey_picture(apart * columns, columns, values, lowest, highest),
        fmt::format("Transaxial factors, 0.5 (dark) to 1.5 (bright): a square for each number "
                    "of modules apart, 0 to {}, by the columns of both crystals",
                    apart - 1));
}

std::string histogram_figure(const std::vector<float>& values, const std::string& caption) {
    constexpr std::size_t bins = 100;
    report::Curve counts(bins);
    for (const float value : values) {
        if (value > 0) counts[static_cast<std::size_t>(std::min(50.0 * value, bins - 1.0))] += 1;
    }
    return report::curve_figure(counts, nullptr, {0.5, "1"}, caption);
}

std::string list(const std::string& title, const std::vector<std::string>& names) {
    if (names.empty()) return "";
    std::string out = fmt::format("<h2>{}: {}</h2>\n<p>", title, names.size());
    for (std::size_t i = 0; i < names.size(); ++i)
        out += (i == 0 ? "" : "; ") + names[i];
    return out + "</p>\n";
}

}  // namespace

void write_normalisation_report(const std::filesystem::path& file, const config::Scanner& scanner,
                                const DerivedNormalisation& d) {
    const config::Geometry& g = scanner.geometry;
    std::string body =
        "<pre>" + report::escaped(figures_text(scanner, d)) + "</pre>\n<div class=\"units\">\n";
    body += efficiencies_figure(scanner, d.normalisation) +
            histogram_figure(d.normalisation.efficiency, "Crystals by efficiency, 0 to 2");
    if (g.is_ring()) {
        body += transaxial_figure(g, d.normalisation) + axial_figure(g, d.normalisation);
    } else if (d.normalisation.classes) {
        body += histogram_figure(d.normalisation.transaxial, "Transaxial factors, 0 to 2") +
                histogram_figure(d.normalisation.axial, "Axial factors, 0 to 2");
    }
    body += "</div>\n";
    std::vector<std::string> names;
    for (const std::uint32_t unit : d.dead.units)
        names.push_back(unit_name(g, unit));
    body += list("Dead units", names) + list("Other dead crystals", d.dead.crystals);
    names.clear();
    for (const std::uint32_t crystal : d.fit.crystals.unseen)
        names.push_back(std::to_string(crystal));
    body += list("Crystals that no line through the source meets; efficiency 1", names);
    body +=
        "<p class=\"muted\">Factors of unseen classes are products of the patterns of their columns or "
        "rings: "
        "images of objects that reach further than the source rely on them. Pairs that scattered in the "
        "source are subtracted, as a simulation of it expects them; lines near its edge, where they weigh "
        "most, are left out.</p>\n<h2>Made from</h2>\n";
    report::Table origin;
    for (const auto& [name, text] : d.normalisation.origin)
        origin.rows.push_back({{name}, {text}});
    daemon::replace_file(file, report::html_of(report::Page{"Normalisation of " + scanner.name, "",
                                                            body + report::html_of(origin)}));
}

}  // namespace petacq::petcal

#include <fmt/printf.h>

#include <algorithm>
#include <span>
#include <string>

#include "daemon/system/file.hpp"
#include "tools/petcal/base/units.hpp"
#include "tools/petcal/report/figures.hpp"
#include "tools/petcal/report/reports.hpp"
#include "tools/report/figures.hpp"
#include "tools/report/page.hpp"

namespace petacq::petcal {

namespace {

/// Points as a path: round ends of lines without length.
std::string points(const std::vector<FloodPoint>& at, const char* colour, double width) {
    if (at.empty()) return "";
    std::string path;
    for (const FloodPoint& p : at)
        path += fmt::sprintf("M%.1f %.1fh0", p.x + 0.5, p.y + 0.5);
    return fmt::sprintf(R"(<path stroke="%s" stroke-width="%.2f" stroke-linecap="round" d=")", colour,
                        width) +
           path + "\"/>";
}

std::string unit_figure(const FloodShape& shape, std::span<const std::uint32_t> flood, const UnitMap& map,
                        const std::vector<KnownSpot>& known, const std::string& name) {
    std::vector<FloodPoint> found;
    std::vector<FloodPoint> predicted;
    std::vector<FloodPoint> given;
    given.reserve(known.size());
    for (std::size_t origin = 0; origin < map.spots.size(); ++origin)
        (map.found[origin] != 0 ? found : predicted).push_back(map.spots[origin]);
    for (const KnownSpot& spot : known)
        given.push_back(spot.at);
    const MapQuality& q = map.quality;
    const double dot = shape.size / 85.0;
    std::string caption = report::escaped(name) + "<br>" +
                          fmt::sprintf(
                              "%u of %zu peaks, %.0f counts per crystal<br>separation %.2f, %.2f; "
                              "between peaks %.1f %%; outside %.2f %%",
                              q.peaks, map.found.size(), q.counts / static_cast<double>(map.found.size()),
                              q.separation_x, q.separation_y, 100 * q.between_peaks, 100 * q.outside);
    if (!map.refused.empty())
        caption += "<br><span class=\"bad\">" + report::escaped(map.refused) + "</span>";
    return report::square_figure(
        flood_picture(shape, flood), shape.size, name,
        points(found, "#39b3ff", dot) + points(predicted, "#ff4d4d", dot) + points(given, "#ffd23f", dot),
        caption);
}

}  // namespace

void write_crystals_report(const std::filesystem::path& file, const config::Scanner& scanner,
                           const config::Spectra& spectra, const std::vector<UnitMap>& maps,
                           const std::vector<std::vector<KnownSpot>>& known) {
    const config::Geometry& g = scanner.geometry;
    std::vector<std::size_t> order;
    for (std::uint32_t unit = 0; unit < maps.size(); ++unit)
        if (g.crystals_of_unit(unit) > 0) order.push_back(unit);
    // Units that need a look come first.
    const auto worse = [&](std::size_t a, std::size_t b) {
        const bool refused_a = !maps[a].refused.empty();
        const bool refused_b = !maps[b].refused.empty();
        if (refused_a != refused_b) return refused_a;
        return maps[a].quality.peaks < maps[b].quality.peaks;
    };
    std::stable_sort(order.begin(), order.end(), worse);
    const auto refused = static_cast<std::size_t>(
        std::count_if(maps.begin(), maps.end(), [](const UnitMap& m) { return !m.refused.empty(); }));
    std::string body = fmt::sprintf(
        "<p>%zu units, of which %zu cannot be derived. Those with missing peaks come first.</p>\n"
        "<p class=\"muted\">Blue: crystals with a peak; red: places that the others predict; yellow: "
        "places given by hand. Row 0 is at the top, column 0 on the left. Separation is the distance "
        "of crystals divided by the FWHM of their spots, along x and y.</p>\n<div class=\"units\">\n",
        order.size(), refused);
    for (const std::size_t unit : order) {
        const FloodShape shape = flood_shape(scanner, static_cast<std::uint32_t>(unit));
        const auto flood = std::span(spectra.floods).subspan(unit * shape.positions(), shape.positions());
        body += unit_figure(shape, flood, maps[unit], known[unit], unit_name(g, unit));
    }
    daemon::replace_file(
        file, report::html_of(report::Page{"Crystal maps of " + scanner.name, "", body + "</div>\n"}));
}

}  // namespace petacq::petcal

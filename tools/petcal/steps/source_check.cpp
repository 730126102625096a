#include "tools/petcal/steps/source_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/base/error.hpp"
#include "tools/petcal/base/text.hpp"
#include "tools/petcal/estimate/pairs/scanner_size.hpp"

namespace petacq::petcal {

namespace {

constexpr double sigmas = 5;

estimate::KnownSource moved(estimate::KnownSource source, const config::Vector3& by) {
    for (std::size_t i = 0; i < by.size(); ++i) {
        source.from[i] += by[i];
        source.to[i] += by[i];
    }
    return source;
}

}  // namespace

void check_on_axis(const config::Scanner& scanner, double x_mm, double y_mm, const char* option) {
    if (!scanner.rotation || (x_mm == 0 && y_mm == 0)) return;
    throw config::Error(
        fmt::format("{}: the scanner turns, and crystals are compared by what they see at all angles; "
                    "expected a source on the axis, with x and y of 0, found {:g} and {:g} mm",
                    option, x_mm, y_mm));
}

void check_source(const config::Scanner& scanner, std::span<const estimate::Line> lines,
                  const SourceCheck& check) {
    constexpr std::uint64_t enough = 2000;
    const estimate::SourcePlace place = find_source(scanner, lines, check.said, check.depth_mm);
    if (place.lines < enough) return;
    config::Vector3 by{};
    for (std::size_t i = 0; i < by.size(); ++i)
        by[i] = place.centre_mm[i] - (check.said.from[i] + check.said.to[i]) / 2;
    std::string exchanged;
    for (const estimate::Exchange& e : exchanged_modules(scanner, lines, moved(check.said, by)))
        exchanged += fmt::format(
            "{}BDMs {} and {} seem to be exchanged: {:.0f} % of their prompts miss the source, {:.0f} % if "
            "each is in the place of the other",
            exchanged.empty() ? "" : "; ", e.a, e.b, 100 * e.missed, 100 * e.missed_after);
    if (!exchanged.empty())
        throw config::Error(check.run + ": " + exchanged + ": check their cables and numbers");
    const double across = std::hypot(by[0], by[1]);
    const bool off_across = across > std::max(check.limit_mm, sigmas * place.error_mm);
    // Its ends, or its length, are less certain than its middle.
    const bool off_along = std::abs(by[2]) > std::max(3 * check.limit_mm, sigmas * place.error_along_mm);
    if (!off_across && !off_along) return;
    throw config::Error(
        fmt::format("{}: the source is not where it was said to be: its prompts come from around {:.2f}, "
                    "{:.2f}, {:.2f} mm, {} says {:g}, {:g}, {:g}: {:.2f} mm off across the axis, {:.2f} mm "
                    "along it; expected at most {:.2g} and {:.2g} mm: move it, or say where it is",
                    check.run, place.centre_mm[0], place.centre_mm[1], place.centre_mm[2], check.option,
                    place.centre_mm[0] - by[0], place.centre_mm[1] - by[1], place.centre_mm[2] - by[2],
                    across, std::abs(by[2]), check.limit_mm, 3 * check.limit_mm));
}

void check_rings(const config::Scanner& scanner, std::span<const double> counts,
                 std::span<const double> expected, const SourceCheck& check) {
    const config::Geometry& g = scanner.geometry;
    const std::vector<std::uint32_t> rings = estimate::rings_without(g, counts, expected);
    if (rings.empty()) return;
    const estimate::ScannerSize size = estimate::size_of(scanner);
    const double from = std::min(check.said.from[2], check.said.to[2]);
    const double to = std::max(check.said.from[2], check.said.to[2]);
    throw config::Error(
        fmt::format("{}: the source does not reach all crystals: rings {} of {} have less than a fifth of "
                    "the prompts of the others; expected a source that covers the crystals, from {:g} to "
                    "{:g} mm along the axis ({} says {:g} to {:g} mm)",
                    check.run, ranges_text(rings), estimate::ring_count(g), size.low_mm, size.high_mm,
                    check.option, from, to));
}

}  // namespace petacq::petcal

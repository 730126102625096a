#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "config/base/decimals.hpp"
#include "config/scanner/existing_modules.hpp"
#include "daemon/system/file.hpp"
#include "tools/petcal/report/figures.hpp"
#include "tools/petcal/report/reports.hpp"
#include "tools/report/figures.hpp"
#include "tools/report/page.hpp"

namespace petacq::petcal {

namespace {

/// The standard deviation of all pairs says little about their peak: most of it comes from randoms.
constexpr double shown_sigmas = 12;

std::string histogram_figure(const Curve& counts, const Curve* other, double range,
                             const std::string& caption) {
    return report::curve_figure(counts, other,
                                {0.5, "", fmt::format("{:.0f} ps", -range), fmt::format("+{:.0f} ps", range)},
                                caption);
}

Curve histogram(const std::vector<double>& values, double range) {
    constexpr double bins = 100;
    Curve counts(static_cast<std::size_t>(bins));
    for (const double value : values)
        if (std::abs(value) < range) counts[static_cast<std::size_t>((value / range + 1) / 2 * bins)] += 1;
    return counts;
}

/// Mean change and undetermined crystals of each BDM.
std::string modules_html(const config::Geometry& g, const estimate::TimeOffsets& found, double tick_ps) {
    report::Table table{
        {}, {"BDM", "mean change, ps", "rms of the change, ps", "crystals without an offset"}, {}};
    for (const std::uint32_t bdm : config::existing_modules(g)) {
        double known = 0;
        double sum = 0;
        double squares = 0;
        std::size_t without = 0;
        for (std::uint32_t du = 0; du < g.du_count; ++du) {
            for (std::uint32_t local = 0; local < g.crystals_of_unit(bdm * g.du_count + du); ++local) {
                const std::uint32_t crystal = g.crystal(bdm, du, local);
                if (!std::isfinite(found.error_ticks[crystal])) {
                    ++without;
                    continue;
                }
                const double change = found.ticks[crystal] * tick_ps;
                known += 1;
                sum += change;
                squares += change * change;
            }
        }
        const bool any = known > 0;
        table.rows.push_back(
            {{std::to_string(bdm)},
             {any ? fmt::format("{:+.0f}", config::without_minus_zero(sum / known, 0)) : "unknown", true},
             {any ? fmt::format("{:.0f}", std::sqrt(squares / known)) : "unknown", true},
             {std::to_string(without), true, without > 0}});
    }
    return "<h2>BDMs</h2>\n" + report::html_of(table);
}

std::string undetermined_html(const std::vector<std::uint32_t>& crystals) {
    constexpr std::size_t most = 1000;
    if (crystals.empty()) return "<p>All crystals have an offset.</p>\n";
    std::string out = fmt::format("<h2>Crystals without an offset: {}</h2>\n<p>", crystals.size());
    for (std::size_t i = 0; i < std::min(most, crystals.size()); ++i)
        out += fmt::format("{}{}", i == 0 ? "" : ", ", crystals[i]);
    return out + (crystals.size() > most ? ", ..." : "") +
           "</p>\n<p class=\"muted\">They have too few prompts, or no peak in time, and keep what they "
           "had.</p>\n";
}

}  // namespace

void write_time_report(const std::filesystem::path& file, const config::Scanner& scanner,
                       const DerivedTimes& times) {
    const config::Geometry& g = scanner.geometry;
    const estimate::TimeOffsets& found = times.offsets;
    std::vector<double> changes;
    double squares = 0;
    for (std::size_t i = 0; i < found.ticks.size(); ++i) {
        if (!std::isfinite(found.error_ticks[i])) continue;
        changes.push_back(found.ticks[i] * times.tick_ps);
        squares += changes.back() * changes.back();
    }
    const double rms =
        std::max(1.0, std::sqrt(squares / std::max<double>(1, static_cast<double>(changes.size()))));
    const double range = std::max(1.0, shown_sigmas * found.sigma_ticks * times.tick_ps);
    const auto before = histogram(times.before_ps, range);
    std::string body = fmt::format(
        "<p>{} prompts, of which {} miss the source; {:.1f} % of the others lie in the peak. One pair has a "
        "standard deviation of {:.0f} ps. {:.1f} % of the hits belong to a neighbour of the crystal that "
        "they "
        "name. Groups of crystals that no pair joins: {}.</p>\n",
        times.prompts, times.missed, 100 * found.in_peak, found.sigma_ticks * times.tick_ps,
        100 * found.beside, found.groups);
    if (const std::string advice = advice_on_prompts(times); !advice.empty())
        body += "<p class=\"bad\">" + report::escaped(advice) + ".</p>\n";
    if (found.groups > 1)
        body += "<p class=\"bad\">Nothing is known of the offsets between the groups: " +
                report::escaped(groups_text(g, found)) + ".</p>\n";
    body += "<div class=\"units\">\n" +
            histogram_figure(histogram(times.after_ps, range), &before, range,
                             "Time differences of pairs less what the path difference makes: before (orange) "
                             "and after (blue)") +
            histogram_figure(histogram(changes, 4 * rms), nullptr, 4 * rms, "Changes of the offsets");
    const auto value = [&](std::uint32_t crystal) {
        return std::isfinite(found.error_ticks[crystal]) ? found.ticks[crystal] * times.tick_ps : no_value;
    };
    body += crystals_figure(
                scanner, -2 * rms, 2 * rms, value,
                fmt::format("Change of the offset, -{0:.0f} ps (dark) to +{0:.0f} ps (bright); black: "
                            "none. {1}",
                            2 * rms, crystals_order(scanner))) +
            "</div>\n" + modules_html(g, found, times.tick_ps) + undetermined_html(found.undetermined);
    daemon::replace_file(file, report::html_of(report::Page{"Time offsets of " + scanner.name, "", body}));
}

}  // namespace petacq::petcal

#include "tools/petcal/check/check_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "config/energy_bins.hpp"
#include "config/scanner/existing_modules.hpp"
#include "daemon/system/file.hpp"
#include "tools/petcal/base/units.hpp"
#include "tools/petcal/report/figures.hpp"
#include "tools/report/page.hpp"

namespace petacq::petcal {

namespace {

using Subject = CheckFinding::Subject;

constexpr std::size_t max_findings = 200;
constexpr std::size_t max_units = 12;  // with pictures

std::string verdict_text(Verdict verdict) {
    switch (verdict) {
        case Verdict::pass:
            return "<p class=\"verdict\">Pass: nothing has changed.</p>\n";
        case Verdict::look:
            return "<p class=\"verdict bad\">Look: single crystals have changed.</p>\n";
        case Verdict::fail:
            return "<p class=\"verdict bad\">Fail: the detector has changed.</p>\n";
    }
    return "";
}

std::string findings_html(const std::vector<CheckFinding>& findings) {
    if (findings.empty()) return "";
    std::string out = "<p>BDMs to look at: ";
    for (const std::uint32_t bdm : modules_of(findings))
        out += fmt::format("{}{}", out.ends_with(": ") ? "" : ", ", bdm);
    if (modules_of(findings).empty()) out += "all";
    out += ".</p>\n<ul>\n";
    for (std::size_t i = 0; i < std::min(findings.size(), max_findings); ++i)
        out += "<li>" + report::escaped(findings[i].text) + "</li>\n";
    out += "</ul>\n";
    if (findings.size() > max_findings)
        out += fmt::format("<p class=\"bad\">There are {} more.</p>\n", findings.size() - max_findings);
    return out;
}

std::string modules_html(const config::Geometry& g, const DetectorChanges& changes,
                         const std::vector<CheckFinding>& findings) {
    std::set<std::pair<std::uint32_t, Subject>> marked;
    for (const CheckFinding& f : findings)
        if (f.bdm) marked.emplace(*f.bdm, f.subject);
    report::Table table{{},
                        {"BDM", "times, ns", "photopeak, %", "resolution, %", "share of the singles, %",
                         "efficiency, %", "prompts per single, %", "spots, % of their distance"},
                        {}};
    const std::vector<ModuleChanges> modules = by_module(g, changes);
    for (const std::uint32_t bdm : config::existing_modules(g)) {
        const ModuleChanges& m = modules[bdm];
        std::vector<report::Cell> row{{std::to_string(bdm)}};
        const auto add = [&](Subject subject, const Change& change, double factor, int digits) {
            row.push_back({change.known() ? fmt::format("{:+.{}f}", change.size * factor, digits) : "unknown",
                           true, change.known() && marked.contains({bdm, subject})});
        };
        add(Subject::times, m.time_ns, 1, 3);
        add(Subject::photopeak, m.photopeak, 100, 2);
        add(Subject::resolution, m.resolution, 100, 1);
        add(Subject::singles, m.singles, 100, 1);
        add(Subject::efficiency, m.efficiency, 100, 1);
        add(Subject::prompts, m.prompts, 100, 1);
        add(Subject::spots, m.spots, 100, 1);
        table.rows.push_back(std::move(row));
    }
    return "<h2>BDMs</h2>\n" + report::html_of(table) +
           "<p class=\"muted\">Changes since the reference: medians over the DUs and "
           "crystals of the BDM; of the spots, those of the DU that has moved most.</p>\n";
}

/// The values of changes that are ordered by unit, by crystal number.
std::function<double(std::uint32_t)> by_crystal(const config::Geometry& g,
                                                const std::vector<Change>& changes) {
    const auto crystals = daemon::crystals_by_unit(g);
    std::vector<double> values(crystals.size(), no_value);
    for (std::size_t i = 0; i < crystals.size(); ++i)
        if (changes[i].known()) values[crystals[i]] = 100 * changes[i].size;
    return [values = std::move(values)](std::uint32_t crystal) { return values[crystal]; };
}

std::string flood_figure(const FloodShape& shape, const DailyRun& of, std::size_t unit,
                         const std::string& caption) {
    const auto flood = std::span(of.spectra.floods).subspan(unit * shape.positions(), shape.positions());
    return report::square_figure(flood_picture(shape, flood), shape.size, caption, "", caption);
}

Curve sum_of_unit(const DailyRun& of, std::size_t unit, double factor) {
    const auto spectra = unit_spectra(of.scanner.geometry, of.spectra, unit);
    Curve sum(config::energy_bins);
    for (std::size_t i = 0; i < spectra.size(); ++i)
        sum[i % sum.size()] += factor * spectra[i];
    return sum;
}

/// Units that a finding names, or the first one of a BDM that is named as a whole.
std::set<std::size_t> units_of(const config::Geometry& g, const std::vector<CheckFinding>& findings) {
    std::set<std::size_t> units;
    for (const CheckFinding& f : findings)
        if (f.bdm && f.subject != Subject::times && f.subject != Subject::prompts && units.size() < max_units)
            units.insert(std::size_t{*f.bdm} * g.du_count + f.du.value_or(0));
    return units;
}

std::string unit_figures(const DailyRun& reference, const DailyRun& run,
                         const std::vector<CheckFinding>& findings) {
    const config::Geometry& g = run.scanner.geometry;
    const auto units = units_of(g, findings);
    if (units.empty()) return "";
    std::string out = "<h2>DUs to look at</h2>\n<div class=\"units\">\n";
    for (const std::size_t unit : units) {
        const std::string name = unit_name(g, unit);
        const FloodShape shape = flood_shape(run.scanner, static_cast<std::uint32_t>(unit));
        const double factor = run.length_s > 0 ? 1 / run.length_s : 0;
        const Curve before =
            sum_of_unit(reference, unit, reference.length_s > 0 ? 1 / reference.length_s : 0);
        out += flood_figure(shape, reference, unit, name + ": reference") +
               flood_figure(shape, run, unit, name + ": this run") +
               spectrum_figure(sum_of_unit(run, unit, factor), &before,
                               name + ": rates by energy, this run (blue) and reference (orange)");
    }
    return out + "</div>\n";
}

std::string limits_html(const CheckLimits& limits) {
    return fmt::format(
        "<p class=\"muted\">A part is named from these changes on, if they also exceed 6.5 standard "
        "deviations: times {:.3g} ns, photopeak {:.3g} %, resolution {:.3g} %, counts {:.3g} %, efficiency "
        "{:.3g} %, spots {:.3g} % "
        "of their distance.</p>\n",
        limits.time_ns, limits.photopeak_percent, limits.resolution_percent, limits.counts_percent,
        limits.efficiency_percent, limits.spots_percent);
}

std::string name_and_time(const DailyRun& run) {
    return report::escaped(run.directory.string()) +
           (run.started.empty() ? "" : ", " + report::escaped(run.started)) +
           fmt::format(", {:.0f} s", run.length_s);
}

}  // namespace

std::vector<std::uint32_t> modules_of(const std::vector<CheckFinding>& findings) {
    std::set<std::uint32_t> modules;
    for (const CheckFinding& f : findings)
        if (f.bdm) modules.insert(*f.bdm);
    return {modules.begin(), modules.end()};
}

std::vector<ModuleChanges> by_module(const config::Geometry& g, const DetectorChanges& changes) {
    std::vector<ModuleChanges> out(g.bdm_count);
    for (std::size_t bdm = 0; bdm < out.size(); ++bdm) {
        const auto median = [&](const std::vector<Change>& crystals) {
            return median_of(of_module(g, crystals, bdm));
        };
        out[bdm] = {changes.times[bdm],
                    median(changes.photopeaks),
                    median_of(std::span(changes.resolutions).subspan(bdm * g.du_count, g.du_count)),
                    median(changes.singles),
                    changes.efficiencies[bdm],
                    changes.prompts[bdm],
                    {}};
        for (std::size_t unit = bdm * g.du_count; unit < (bdm + 1) * g.du_count; ++unit) {
            const Change& moved = changes.spots[unit];
            if (moved.known() && (!out[bdm].spots.known() || moved.size > out[bdm].spots.size))
                out[bdm].spots = moved;
        }
    }
    return out;
}

void write_check_page(const std::filesystem::path& file, const DailyRun& reference, const DailyRun& run,
                      const DetectorChanges& changes, const std::vector<CheckFinding>& findings,
                      const std::vector<std::string>& unchecked, const CheckLimits& limits) {
    const config::Geometry& g = run.scanner.geometry;
    std::string body = findings_html(findings);
    for (const std::string& why : unchecked)
        body += "<p class=\"bad\">Not checked: " + report::escaped(why) + "</p>\n";
    body += "<p class=\"muted\">Run: " + name_and_time(run) + "<br>Reference: " + name_and_time(reference) +
            "</p>\n" + limits_html(limits) + modules_html(g, changes, findings);
    const double photopeak = 3 * limits.photopeak_percent;
    const double counts = 2 * limits.counts_percent;
    body += "<h2>Crystals</h2>\n<div class=\"units\">\n";
    body += crystals_figure(
        run.scanner, -photopeak, photopeak, by_crystal(g, changes.photopeaks),
        fmt::format("Change of the photopeak, -{0:.3g} % (dark) to +{0:.3g} % (bright); black: unknown. {1}",
                    photopeak, crystals_order(run.scanner)));
    body += crystals_figure(
        run.scanner, -counts, counts, by_crystal(g, changes.singles),
        fmt::format("Change of the share of the singles, -{0:.3g} % (dark) to +{0:.3g} % (bright)", counts));
    body += "</div>\n" + unit_figures(reference, run, findings);
    daemon::replace_file(file, report::html_of(report::Page{"Daily check of " + run.scanner.name,
                                                            verdict_text(verdict_of(findings)), body}));
}

}  // namespace petacq::petcal

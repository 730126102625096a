#include "tools/petcal/check/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "config/median.hpp"
#include "tools/petcal/base/units.hpp"

namespace petacq::petcal {

namespace {

using Subject = CheckFinding::Subject;
using daemon::DetectorFault;

/// A scanner of 43,200 crystals is compared in 100,000 places: one false finding in 1e5 days if errors are
/// normally distributed, and room for errors that are not.
constexpr double sigmas = 6.5;

bool off(const Change& change, double expected, double limit) {
    return change.known() && std::abs(change.size - expected) >= std::max(limit, sigmas * change.error);
}

struct Wording {
    Subject subject;
    const char* of_one;      ///< "its photopeak differs"
    const char* of_several;  ///< "their photopeaks differ"
};

/// Findings of one subject.
class FindingSearch {
  public:
    FindingSearch(const config::Geometry& g, std::vector<CheckFinding>& findings)
        : g_(g), findings_(findings) {}

    /// From the whole scanner down to units, or to crystals.
    void levels(const Wording& wording, const std::vector<Change>& units, double limit,
                const std::vector<bool>& silent, const std::vector<Change>* crystals = nullptr);
    /// Medians over the crystals.
    [[nodiscard]] std::vector<Change> units_of(const std::vector<Change>& crystals,
                                               const std::vector<bool>& silent) const;
    /// But for BDMs that were named for their singles.
    void efficiencies(const std::vector<Change>& modules, double limit);
    /// BDMs of which units have moved spots.
    void spots(const std::vector<Change>& units, double limit);
    /// `what`: has the size.
    void modules(Subject subject, DetectorFault::FaultKind kind, const std::vector<Change>& modules,
                 double limit, bool fewer_only);
    void silent_units(const std::vector<bool>& silent);
    void lost_peaks(const std::vector<bool>& lost);

  private:
    void crystals(const Wording& wording, std::size_t unit, std::span<const Change> changes, double expected,
                  double limit);

    const config::Geometry& g_;
    std::vector<CheckFinding>& findings_;
};

std::string percent(double size) {
    return fmt::format("{:+.{}f} %", 100 * size, std::abs(size) < 0.1 ? 2 : 0);
}

std::vector<Change> FindingSearch::units_of(const std::vector<Change>& crystals,
                                            const std::vector<bool>& silent) const {
    std::vector<Change> units;
    for (std::size_t unit = 0; unit < silent.size(); ++unit)
        units.push_back(silent[unit] ? Change() : median_of(of_unit(g_, crystals, unit)));
    return units;
}

void FindingSearch::levels(const Wording& wording, const std::vector<Change>& units, double limit,
                           const std::vector<bool>& silent, const std::vector<Change>* crystals_of_all) {
    std::vector<Change> modules;
    for (std::size_t bdm = 0; bdm < g_.bdm_count; ++bdm)
        modules.push_back(median_of(std::span(units).subspan(bdm * g_.du_count, g_.du_count)));
    const auto text = [&](const std::string& part, const char* differs, double size) {
        return fmt::format("{}: {} by {} from the reference", part, differs, percent(size));
    };
    /// A part differs from what contains it, and from the reference.
    const auto differs = [&](const Change& change, double expected) {
        return off(change, expected, limit) && off(change, 0, limit);
    };
    double of_all = 0;
    if (const Change all = median_of(modules); differs(all, 0)) {
        of_all = all.size;
        findings_.push_back(
            {wording.subject, all.size, {}, {}, {}, text("all BDMs", wording.of_several, all.size)});
    }
    for (std::uint32_t bdm = 0; bdm < g_.bdm_count; ++bdm) {
        double of_module = of_all;
        if (differs(modules[bdm], of_all)) {
            of_module = modules[bdm].size;
            findings_.push_back({wording.subject,
                                 of_module,
                                 bdm,
                                 {},
                                 {},
                                 text("BDM " + std::to_string(bdm), wording.of_one, of_module)});
        }
        for (std::uint32_t du = 0; du < g_.du_count; ++du) {
            const std::size_t unit = std::size_t{bdm} * g_.du_count + du;
            double usual = of_module;
            if (differs(units[unit], of_module)) {
                usual = units[unit].size;
                findings_.push_back(
                    {wording.subject, usual, bdm, du, {}, text(unit_name(g_, unit), wording.of_one, usual)});
            }
            if (crystals_of_all != nullptr && !silent[unit])
                crystals(wording, unit, petcal::of_unit(g_, *crystals_of_all, unit), usual, limit);
        }
    }
}

void FindingSearch::crystals(const Wording& wording, std::size_t unit, std::span<const Change> changes,
                             double expected, double limit) {
    const auto bdm = static_cast<std::uint32_t>(unit / g_.du_count);
    const auto du = static_cast<std::uint32_t>(unit % g_.du_count);
    std::vector<std::pair<double, std::uint32_t>> found;
    for (std::uint32_t local = 0; local < changes.size(); ++local) {
        const Change& change = changes[local];
        if (off(change, expected, limit) && off(change, 0, limit))
            found.emplace_back(change.size, g_.crystal(bdm, du, local));
    }
    if (found.empty()) return;
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
    CheckFinding finding{wording.subject, found[0].first, bdm, du, {}, unit_name(g_, unit)};
    for (const auto& [size, crystal] : found)
        finding.crystals.push_back(crystal);
    finding.text +=
        found.size() == 1
            ? fmt::format(", crystal {}: {} by {} from the reference", found[0].second, wording.of_one,
                          percent(found[0].first))
            : fmt::format(", {} crystals: {} from the reference, most that of crystal {}, by {}",
                          found.size(), wording.of_several, found[0].second, percent(found[0].first));
    findings_.push_back(std::move(finding));
}

void FindingSearch::spots(const std::vector<Change>& units, double limit) {
    for (std::uint32_t bdm = 0; bdm < g_.bdm_count; ++bdm) {
        std::vector<std::uint32_t> moved;
        double largest = 0;
        for (std::uint32_t du = 0; du < g_.du_count; ++du) {
            const Change& change = units[std::size_t{bdm} * g_.du_count + du];
            if (!off(change, 0, limit)) continue;
            moved.push_back(du);
            largest = std::max(largest, change.size);
        }
        if (moved.empty()) continue;
        CheckFinding finding{Subject::spots, largest, bdm, {}, {}, {}};
        if (moved.size() == 1) finding.du = moved[0];
        finding.text = moved.size() == 1 ? unit_name(bdm, moved[0]) + ": its"
                                         : fmt::format("BDM {}: in {} DUs the", bdm, moved.size());
        finding.text += fmt::format(" spots moved by {}{:.0f} % of their distance since the reference",
                                    moved.size() == 1 ? "" : "up to ", 100 * largest);
        findings_.push_back(std::move(finding));
    }
}

void FindingSearch::modules(Subject subject, DetectorFault::FaultKind kind,
                            const std::vector<Change>& modules, double limit, bool fewer_only) {
    for (std::uint32_t bdm = 0; bdm < g_.bdm_count; ++bdm) {
        const Change& change = modules[bdm];
        if (!off(change, 0, limit) || (fewer_only && change.size > 0)) continue;
        findings_.push_back(
            {subject, change.size, bdm, {}, {}, DetectorFault{kind, bdm, change.size, 0, 0}.what()});
    }
}

void FindingSearch::efficiencies(const std::vector<Change>& modules, double limit) {
    for (std::uint32_t bdm = 0; bdm < g_.bdm_count; ++bdm) {
        const bool named = std::any_of(findings_.begin(), findings_.end(), [&](const CheckFinding& f) {
            return f.subject == Subject::singles && f.bdm == bdm && f.crystals.empty();
        });
        const Change& change = modules[bdm];
        if (named || !off(change, 0, limit)) continue;
        findings_.push_back({Subject::efficiency,
                             change.size,
                             bdm,
                             {},
                             {},
                             fmt::format("BDM {}: its efficiency differs by {} from the reference, with an "
                                         "error of {:.1f} %",
                                         bdm, percent(change.size), 100 * change.error)});
    }
}

void FindingSearch::silent_units(const std::vector<bool>& silent) {
    for (std::uint32_t bdm = 0; bdm < g_.bdm_count; ++bdm) {
        std::vector<std::uint32_t> found;
        for (std::uint32_t du = 0; du < g_.du_count; ++du)
            if (silent[std::size_t{bdm} * g_.du_count + du]) found.push_back(du);
        if (found.empty()) continue;
        const auto count = static_cast<double>(found.size());
        CheckFinding finding{
            Subject::singles,
            -1,
            bdm,
            {},
            {},
            DetectorFault{DetectorFault::FaultKind::silent_units, bdm, count, found[0], 0}.what()};
        if (found.size() == 1) finding.du = found[0];
        findings_.push_back(std::move(finding));
    }
}

void FindingSearch::lost_peaks(const std::vector<bool>& lost) {
    for (std::uint32_t unit = 0; unit < g_.unit_count(); ++unit) {
        const std::uint32_t bdm = unit / g_.du_count;
        const std::uint32_t du = unit % g_.du_count;
        CheckFinding finding{Subject::photopeak, 0, bdm, du, {}, unit_name(g_, unit)};
        for (std::uint32_t local = 0; local < g_.crystals_of_unit(unit); ++local)
            if (lost[first_of_unit(g_, unit) + local]) finding.crystals.push_back(g_.crystal(bdm, du, local));
        if (finding.crystals.empty()) continue;
        finding.text +=
            finding.crystals.size() == 1
                ? fmt::format(", crystal {}: it has no clear photopeak any more", finding.crystals[0])
                : fmt::format(", {} crystals, the first {}: they have no clear photopeak any more",
                              finding.crystals.size(), finding.crystals[0]);
        findings_.push_back(std::move(finding));
    }
}

/// The limit must be above chance in half of the parts; else why it is not. `unit`: of the text.
std::string too_uncertain(const std::string& what, const std::vector<Change>& parts, double limit,
                          double factor, std::string_view unit) {
    if (parts.empty()) return "";
    std::vector<double> errors;
    errors.reserve(parts.size());
    for (const Change& part : parts)
        errors.push_back(sigmas * part.error);
    const double middle = config::median(std::move(errors));
    if (middle <= limit) return "";
    const std::string found =
        std::isfinite(middle) ? fmt::format("only one of {:.3g} {}", middle * factor, unit) : "none";
    return fmt::format(
        "too few counts for {}: expected that a change by {:.3g} {} can be told from chance (6.5 sigma) in "
        "at least half of them, found {}",
        what, limit * factor, unit, found);
}

/// [unit] Of those that exist and are not silent.
std::vector<Change> counting_units(const config::Geometry& g, const std::vector<Change>& units,
                                   const std::vector<bool>& silent) {
    std::vector<Change> out;
    for (std::uint32_t unit = 0; unit < units.size(); ++unit)
        if (!silent[unit] && g.crystals_of_unit(unit) > 0) out.push_back(units[unit]);
    return out;
}

/// Of the crystals of units that are not silent.
std::vector<Change> counting_crystals(const config::Geometry& g, const std::vector<Change>& crystals,
                                      const std::vector<bool>& silent) {
    std::vector<Change> out;
    for (std::size_t unit = 0; unit < silent.size(); ++unit) {
        if (silent[unit]) continue;
        const auto here = of_unit(g, crystals, unit);
        out.insert(out.end(), here.begin(), here.end());
    }
    return out;
}

}  // namespace

const char* name_of(Subject subject) {
    switch (subject) {
        case Subject::times:
            return "times";
        case Subject::photopeak:
            return "photopeak";
        case Subject::resolution:
            return "resolution";
        case Subject::singles:
            return "singles";
        case Subject::efficiency:
            return "efficiency";
        case Subject::prompts:
            return "prompts";
        case Subject::spots:
            return "spots";
    }
    return "";
}

const char* name_of(Verdict verdict) {
    return verdict == Verdict::pass ? "pass" : verdict == Verdict::look ? "look" : "fail";
}

Verdict verdict_of(const std::vector<CheckFinding>& findings) {
    const bool large = std::any_of(findings.begin(), findings.end(),
                                   [](const CheckFinding& f) { return f.crystals.empty(); });
    return findings.empty() ? Verdict::pass : large ? Verdict::fail : Verdict::look;
}

std::vector<CheckFinding> find_in_changes(const config::Geometry& geometry, const DetectorChanges& changes,
                                          const CheckLimits& limits) {
    const double counts = limits.counts_percent / 100;
    std::vector<CheckFinding> findings;
    FindingSearch search(geometry, findings);
    search.silent_units(changes.silent);
    search.modules(Subject::times, DetectorFault::FaultKind::time_off, changes.times, limits.time_ns, false);
    search.levels({Subject::photopeak, "its photopeak differs", "their photopeaks differ"},
                  search.units_of(changes.photopeaks, changes.silent), limits.photopeak_percent / 100,
                  changes.silent, &changes.photopeaks);
    search.lost_peaks(changes.lost_peaks);
    search.levels({Subject::resolution, "its energy resolution differs", "their energy resolutions differ"},
                  changes.resolutions, limits.resolution_percent / 100, changes.silent);
    search.levels(
        {Subject::singles, "its share of the singles differs", "their shares of the singles differ"},
        search.units_of(changes.singles, changes.silent), counts, changes.silent, &changes.singles);
    search.efficiencies(changes.efficiencies, limits.efficiency_percent / 100);
    search.modules(Subject::prompts, DetectorFault::FaultKind::prompts_off, changes.prompts, counts, true);
    search.spots(changes.spots, limits.spots_percent / 100);
    return findings;
}

void name_loss(std::vector<CheckFinding>& findings, const daemon::LiveSums& reference,
               const daemon::LiveSums& run) {
    for (CheckFinding& finding : findings) {
        if (!finding.bdm || (finding.subject != Subject::singles && finding.subject != Subject::efficiency &&
                             finding.subject != Subject::prompts))
            continue;
        for (const auto& [live, where] : {std::pair(&run, "run"), std::pair(&reference, "reference")}) {
            const auto share = live->of(*finding.bdm);
            if (!share) {
                finding.text += fmt::format("; whether its data arrived in the {} is not known", where);
            } else if (*share < 1) {
                finding.text +=
                    fmt::format("; {:.3g} % of its data did not arrive in the {}", 100 * (1 - *share), where);
            }
        }
    }
}

std::vector<std::string> insufficient_data(const config::Geometry& geometry, const DetectorChanges& changes,
                                           const CheckLimits& limits) {
    std::vector<Change> peaks;
    for (std::size_t unit = 0; unit < changes.silent.size(); ++unit)
        peaks.push_back(median_of(of_unit(geometry, changes.photopeaks, unit)));
    std::vector<Change> efficiencies = changes.efficiencies;
    std::erase_if(efficiencies, [](const Change& c) { return !c.known(); });
    std::vector<std::string> out;
    for (const std::string& why :
         {too_uncertain("the times of BDMs", changes.times, limits.time_ns, 1, "ns"),
          too_uncertain("the photopeaks of DUs", counting_units(geometry, peaks, changes.silent),
                        limits.photopeak_percent / 100, 100, "%"),
          too_uncertain("the efficiencies of BDMs", efficiencies, limits.efficiency_percent / 100, 100, "%"),
          too_uncertain("the singles of crystals",
                        counting_crystals(geometry, changes.singles, changes.silent), 1, 100, "%"),
          too_uncertain("the flood maps of DUs", counting_units(geometry, changes.spots, changes.silent),
                        limits.spots_percent / 100, 100, "% of the distance between spots")})
        if (!why.empty()) out.push_back(why);
    return out;
}

}  // namespace petacq::petcal

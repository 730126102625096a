#include "tools/petlm/lifetime/lifetime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

#include "tools/geometry/bore.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/lifetime/fit.hpp"
#include "tools/petlm/lifetime/places.hpp"
#include "tools/petlm/lifetime/spectra.hpp"
#include "tools/petlm/reconstruction/image/setup.hpp"
#include "tools/petlm/records/delayeds_weight.hpp"
#include "tools/petlm/records/origin.hpp"
#include "tools/petlm/records/scanner_angle.hpp"
#include "tools/petlm/records/source.hpp"
#include "tools/petlm/results/report.hpp"

namespace petacq::lifetime {
namespace {

using petlm::ExportSource;
using petlm::LifetimeOptions;
using petlm::UsageError;
using results::Figure;
using results::Report;

constexpr std::array component_names{"para", "direct", "ortho"};
constexpr double bad_fit = 5;       // standard deviations of the deviance
constexpr double few_counts = 1.2;  // the deviance of bins with few counts is larger by up to this

FitSettings settings_of(const LifetimeOptions& o) {
    FitSettings settings;
    settings.para_ns = o.para_ns.value_or(settings.para_ns);
    settings.direct_ns = o.direct_ns.value_or(settings.direct_ns);
    if (!(settings.para_ns > 0 && settings.direct_ns > settings.para_ns && settings.direct_ns < 10))
        throw UsageError(
            fmt::format("--para-ns, --direct-ns: expected 0 < para < direct < 10 ns, found {:g} and {:g}",
                        settings.para_ns, settings.direct_ns));
    if (o.resolution_ps) {
        if (!(*o.resolution_ps > 0 && *o.resolution_ps <= 10'000))
            throw UsageError(fmt::format("--resolution-ps: expected more than 0, up to 10000, found {:g}",
                                         *o.resolution_ps));
        settings.resolution_ns = *o.resolution_ps * 1e-3;
    }
    if (o.offset_ps) settings.offset_ns = *o.offset_ps * 1e-3;
    return settings;
}

const config::Gammas& gammas_of(const ExportSource& source) {
    if (source.kind() != daemon::RecordKind::triples) {
        throw UsageError(source.target().string() + " holds " + daemon::name_of(source.kind()) +
                         "; expected triples");
    }
    const auto& gammas = source.coverage().rules.gammas;
    if (!gammas) throw petlm::BadInput(source.target().string() + ": does not tell the window of its gammas");
    return *gammas;
}

/// NaN: not fitted.
double error_of(const Estimate& estimate) {
    return estimate.error > 0 ? estimate.error : results::unknown;
}

results::ResultTable spectrum_table(const std::string& name, const std::string& region, const Spectrum& s,
                                    const LifetimeFit& fit) {
    results::ResultTable table{
        name,
        "Lifetime spectrum of " + region,
        {"ns", "triples", "delayed_gammas", "random_pairs", "fit", "para", "direct", "ortho"},
        {}};
    for (std::size_t i = 0; i < s.bins(); ++i) {
        table.rows.push_back({s.middle_ns(i), s.coincident[i],
                              s.delayed.empty() ? results::unknown : s.delayed[i],
                              s.randoms[i] - s.randoms_by_chance, fit.expected[i], fit.of_component[0][i],
                              fit.of_component[1][i], fit.of_component[2][i]});
    }
    return table;
}

results::Chart spectrum_chart(const std::string& name, const std::string& region, const Spectrum& s,
                              const LifetimeFit& fit) {
    results::Chart chart{name, "Lifetime spectrum of " + region, "lifetime (ns)", "log10 of triples per bin"};
    const auto curve = [&](const char* of, const std::function<double(std::size_t)>& value) {
        results::Chart::Curve out{of, {}, {}};
        for (std::size_t i = 0; i < s.bins(); ++i) {
            out.x.push_back(s.middle_ns(i));
            const double v = value(i);
            out.y.push_back(v >= 1 ? std::log10(v) : results::unknown);
        }
        chart.curves.push_back(std::move(out));
    };
    curve("measured", [&](std::size_t i) { return s.coincident[i]; });
    curve("fit", [&](std::size_t i) { return fit.expected[i]; });
    curve("ortho-positronium", [&](std::size_t i) { return fit.of_component[2][i]; });
    curve("para and direct", [&](std::size_t i) { return fit.of_component[0][i] + fit.of_component[1][i]; });
    return chart;
}

void add_warnings(const std::string& region, const Spectrum& s, const LifetimeFit& fit,
                  std::vector<std::string>& warnings) {
    if (!fit.converged) warnings.push_back(region + ": the fit did not converge.");
    if (!fit.has_ortho())
        warnings.push_back(region +
                           ": no ortho-positronium is seen (an intensity of less than three of its "
                           "errors); its lifetime means nothing and is not given.");
    const auto unknown = [](const Estimate& e) { return std::isnan(e.value); };
    if (std::any_of(fit.intensities.begin(), fit.intensities.end(), unknown) || unknown(fit.mean_ns) ||
        unknown(fit.resolution_ns) || unknown(fit.offset_ns)) {
        warnings.push_back(
            region +
            ": what is unknown has an error larger than itself or its range: there are too few "
            "triples.");
    }
    if (fit.deviance - few_counts * fit.freedom > bad_fit * std::sqrt(2 * fit.freedom)) {
        warnings.push_back(fmt::format(
            "{}: the fit does not describe the data, its deviance is {:.0f} where {:.0f} is expected: "
            "errors are too small. Look at the picture: other lifetimes (--para-ns, --direct-ns), "
            "or times that are not Gaussian.",
            region, fit.deviance, fit.freedom));
    }
    const double longest_ns = fit.has_ortho() ? fit.ortho_ns.value : 0;
    if (s.middle_ns(s.bins() - 1) - fit.offset_ns.value < 5 * longest_ns) {
        warnings.push_back(fmt::format(
            "{}: the window of the gammas ends {:.3g} ns after the annihilations, less than five lifetimes: "
            "background and lifetime are told apart badly.",
            region, s.middle_ns(s.bins() - 1) - fit.offset_ns.value));
    }
}

std::vector<results::Cell> row_of(const std::string& region, const Spectra::OfRegion& of,
                                  const LifetimeFit& fit) {
    const bool ortho = fit.has_ortho();
    std::vector<results::Cell> row{region, of.triples, of.mean_share};
    const auto add = [&](const Estimate& e, bool known = true) {
        row.emplace_back(known ? e.value : results::unknown);
        row.emplace_back(known ? error_of(e) : results::unknown);
    };
    add(fit.ortho_ns, ortho);
    for (const Estimate& intensity : fit.intensities)
        add(intensity);
    add(fit.mean_ns);
    add(fit.resolution_ns);
    add(fit.offset_ns);
    add(fit.chance_per_bin);
    row.emplace_back(fit.deviance);
    row.emplace_back(fit.freedom);
    return row;
}

results::ResultTable empty_results() {
    results::ResultTable table{
        "regions", "Lifetimes by region", {"region", "triples", "share_in_region"}, {}};
    const auto add = [&](const std::string& name) {
        table.columns.push_back(name);
        table.columns.push_back(name + "_error");
    };
    add("ortho_ns");
    for (const char* component : component_names)
        add(std::string(component) + "_intensity");
    for (const char* name : {"mean_ns", "resolution_fwhm_ns", "offset_ns", "by_chance_per_bin"})
        add(name);
    table.columns.insert(table.columns.end(), {"deviance", "freedom"});
    return table;
}

void add_figures(const LifetimeFit& fit, std::vector<Figure>& figures) {
    const auto add = [&](const char* key, const char* name, const Estimate& e, const char* unit) {
        figures.push_back({key, name, e.value, error_of(e), unit});
    };
    if (fit.has_ortho())
        add("ortho_ns", "lifetime of ortho-positronium", fit.ortho_ns, "ns");
    else
        figures.push_back(
            {"ortho_ns", "lifetime of ortho-positronium", results::unknown, results::unknown, "ns"});
    add("ortho_intensity", "intensity of ortho-positronium", fit.intensity(Component::ortho), "");
    add("para_intensity", "intensity of para-positronium", fit.intensity(Component::para), "");
    add("direct_intensity", "intensity of direct annihilation", fit.intensity(Component::direct), "");
    add("mean_ns", "mean lifetime", fit.mean_ns, "ns");
    add("resolution_fwhm_ns", "resolution (FWHM)", fit.resolution_ns, "ns");
    add("offset_ns", "offset", fit.offset_ns, "ns");
}

std::vector<std::string> procedure_of(const FitSettings& settings, const std::string& tof,
                                      const config::DepthOfInteraction& depth,
                                      const LifetimeOptions& options) {
    std::vector<std::string> out;
    out.emplace_back(
        "The lifetime of a triple is the mean of both times of its pair, less half the flight along the "
        "line, "
        "less the time of the gamma, less its flight from the place of the annihilation.");
    out.push_back(fmt::format(
        "That place is the mean of the activity along the line, {}, weighted by the time of flight where it "
        "is "
        "used. A triple belongs to the region with at least {:g} of the activity of its line.",
        options.image ? "as the image shows it" : "taken as even in the regions", options.min_share));
    out.push_back(tof);
    out.push_back("Photons interact " + depth.text() + ".");
    out.push_back(fmt::format(
        "Lifetimes held: para-positronium {:g} ns, direct annihilation {:g} ns. {} {} Intensities, the "
        "lifetime "
        "of ortho-positronium and the background are fitted by maximum likelihood.",
        settings.para_ns, settings.direct_ns,
        settings.resolution_ns ? fmt::format("Resolution held: {:g} ns (FWHM).", *settings.resolution_ns)
                               : std::string("The resolution is fitted."),
        settings.offset_ns ? fmt::format("Offset held: {:g} ns.", *settings.offset_ns)
                           : std::string("The offset is fitted.")));
    out.emplace_back(
        "Gammas that came by chance are measured by the delayed gammas; the gammas of random pairs by the "
        "delayeds, each counted for both of its photons.");
    return out;
}

void add_doubts(const ExportSource& source, const config::Gammas& gammas, Report& report) {
    for (const std::string& doubt : image::doubts_about(source))
        report.warnings.push_back(doubt);
    if (gammas.policy != config::GammaPolicy::all)
        report.warnings.emplace_back(
            "The run kept at most one gamma of a pair: gammas by chance hide others, and the background is "
            "not "
            "exactly flat. Use the policy \"all\" for lifetimes.");
    const auto& coincidence = source.coverage().rules.coincidence;
    if (coincidence && coincidence->multiples_policy != config::MultiplesPolicy::take_all_goods)
        report.warnings.emplace_back(
            "The multiples policy of the run is not TakeAllGoods: a pair is lost when another decay is near, "
            "and "
            "with it a gamma by chance. The background is lower around the lifetimes than delayed gammas "
            "say, the "
            "more the higher the activity.");
    if (!gammas.delay_ticks)
        report.warnings.emplace_back("The run has no delayed gammas: the background is only fitted.");
    if (!source.may_hold_delayeds())
        report.warnings.emplace_back(
            "The run has no delayeds: the gammas of random pairs are not subtracted.");
}

std::string sentence_of(const ExportSource& source, const config::Gammas& gammas) {
    return fmt::format("{}: {} triples in {:.6g} s, gammas of {:g} to {:g} keV.", source.target().string(),
                       source.records(), source.coverage().seconds(), gammas.lower_keV, gammas.upper_keV);
}

/// Reads the triples once.
void fill(Spectra& spectra, const ExportSource& source, const config::Scanner& scanner, Report& report) {
    std::optional<petlm::ScannerAngle> angle;
    if (scanner.rotation) angle.emplace(source.target(), source.coverage(), *scanner.rotation);
    petlm::DelayedsWeight weight(petlm::run_directories(source.target(), source.coverage()),
                                 source.coverage().rules);
    source.for_each_block(
        scanner.geometry.crystal_count(),
        [&](const daemon::ListModeReader& reader) {
            for (const gpu::Triple& triple : reader.triples())
                spectra.add(triple, weight.at(triple.pair.time), angle ? angle->at(triple.pair.time) : 0);
        },
        "reading");
    if (source.may_hold_delayeds() && !weight.trouble().empty())
        report.warnings.push_back(
            "The weights of delayeds are not known, so the gammas of random pairs are not "
            "exact: " +
            weight.trouble() + ".");
}

void fit_region(const std::string& region, const std::string& suffix, const Spectra::OfRegion& of,
                const FitSettings& settings, Report& report) {
    try {
        const LifetimeFit fit = fit_lifetimes(of.spectrum, settings);
        report.tables.front().rows.push_back(row_of(region, of, fit));
        report.tables.push_back(spectrum_table("spectrum" + suffix, region, of.spectrum, fit));
        report.charts.push_back(spectrum_chart("spectrum" + suffix, region, of.spectrum, fit));
        add_warnings(region, of.spectrum, fit, report.warnings);
        if (report.figures.empty() && suffix.empty()) add_figures(fit, report.figures);
    } catch (const std::invalid_argument&) {
        report.warnings.push_back(fmt::format(
            "{}: {:.0f} triples, too few beyond those by chance to fit lifetimes.", region, of.triples));
    }
}

}  // namespace
}  // namespace petacq::lifetime

namespace petacq::petlm {

int lifetime(const LifetimeOptions& options) {
    using namespace lifetime;
    results::check_output(options.output, options.force);
    const FitSettings settings = settings_of(options);
    const ExportSource source(options.target, daemon::RecordKind::triples);
    const config::Gammas& gammas = gammas_of(source);
    const config::Scanner scanner = source.scanner(options.scanner);
    const auto depth = config::DepthOfInteraction::of(scanner, options.depth_mm);
    const image::TofChoice tof =
        image::choose_tof(options.tof, source, scanner, 2 * geometry::bore_of(scanner).radius_mm);
    std::optional<ActivityImage> shown;
    if (options.image) shown = activity_of_image(*options.image);
    const image::Grid grid = shown ? shown->grid : image::choose_grid(scanner, {});
    const auto regions = frames::regions_of(options.regions, grid);
    Places places(grid, shown ? &shown->values : nullptr, regions, tof.bins, options.min_share);
    Spectra spectra(scanner, depth, gammas, places, std::max<std::size_t>(regions.size(), 1));

    Report report{"lifetime", "Lifetimes of positrons"};
    report.inputs.push_back(sentence_of(source, gammas));
    report.procedure = procedure_of(settings, tof.sentence, depth, options);
    add_doubts(source, gammas, report);
    fill(spectra, source, scanner, report);
    report.tables.push_back(empty_results());
    const auto result = spectra.result();
    for (std::size_t r = 0; r < result.size(); ++r) {
        const std::string name = regions.empty() ? "everything" : regions[r].name();
        fit_region(name, result.size() == 1 ? "" : fmt::format("-{}", r + 1), result[r], settings, report);
    }
    if (const std::uint64_t elsewhere = spectra.elsewhere(); elsewhere != 0)
        report.inputs.push_back(fmt::format(
            "{} triples belong to no region: their lines miss the activity, or no region has enough of it.",
            elsewhere));
    if (report.tables.front().rows.empty())
        throw BadInput(source.target().string() + ": too few triples to fit lifetimes");
    results::publish(report, options.output, options.force, options.as_json);
    return ok;
}

}  // namespace petacq::petlm

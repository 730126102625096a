// petlm nema sensitivity: the sensitivity of NEMA NU 4-2008.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "config/base/sum.hpp"
#include "config/shape/extent.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/nema/nema.hpp"
#include "tools/petlm/nema/runs.hpp"
#include "tools/petlm/nema/spurious.hpp"
#include "tools/petlm/nema/standard.hpp"

namespace petacq::nema {
namespace {

constexpr double kept_mm = 10;  ///< on both sides of the largest bin of an angle
constexpr double mouse_mm = 70;
constexpr double rat_mm = 150;
constexpr double max_randoms_of_position = 0.05;
constexpr double min_prompts_of_position = 10'000;

/// Bins within 1 cm of the largest one of their angle.
std::vector<bool> mask_of(const SliceBins& bins, const Sinograms& sinograms) {
    const std::size_t radial = bins.lines().radial();
    const auto columns = columns_of_source(bins, sum_of_slices(bins, sinograms), 0, radial);
    std::vector<bool> mask(bins.in_slice());
    for (std::size_t row = 0; row < bins.lines().angles(); ++row) {
        const auto peak = static_cast<std::ptrdiff_t>(columns[row]);
        for (std::size_t column = 0; column < radial; ++column) {
            const auto away = std::abs(static_cast<std::ptrdiff_t>(column) - peak);
            mask[row * radial + column] = static_cast<double>(away) * bins.lines().width_mm() <= kept_mm;
        }
    }
    return mask;
}

/// [slice] counts in the mask.
std::vector<double> counts_in(const SliceBins& bins, const Sinograms& sinograms,
                              const std::vector<bool>& mask) {
    std::vector<double> counts(bins.slices());
    for (std::size_t i = 0; i < sinograms.counts.size(); ++i) {
        if (mask[i % mask.size()]) counts[i / mask.size()] += sinograms.counts[i];
    }
    return counts;
}

using config::sum_of;

/// The middle of the counts around the slice with the most.
double place_of(const SliceBins& bins, const std::vector<double>& counts) {
    const auto peak = std::max_element(counts.begin(), counts.end()) - counts.begin();
    double sum = 0;
    double moment = 0;
    for (std::ptrdiff_t i = std::max<std::ptrdiff_t>(0, peak - 3);
         i <= std::min<std::ptrdiff_t>(peak + 3, static_cast<std::ptrdiff_t>(counts.size()) - 1); ++i) {
        const auto slice = static_cast<std::size_t>(i);
        sum += counts[slice];
        moment += counts[slice] * bins.slice_mm(slice);
    }
    return sum > 0 ? moment / sum : bins.slice_mm(static_cast<std::size_t>(peak));
}

struct AtPosition {
    std::string run;
    double bed_mm = unknown;
    double z_mm = 0;
    double seconds = 0;
    double mean_MBq = unknown;  // NOLINT(readability-identifier-naming)
    double counts = 0;
    double background_s = INFINITY;  ///< recorded without a source
    double background_per_s = 0;
    double background_error = 0;
    double randoms = unknown;  ///< of all prompts, as a share
    double all = 0;            ///< prompts, whatever their line
    double all_background_per_s = 0;
    double branching = 1;
    double loss_factor = 1;   ///< IntervalSeconds
    double spurious = 0;      ///< of the counts, expected: pairs with prompt gammas
    double all_spurious = 0;  ///< likewise of all prompts

    [[nodiscard]] double per_s() const {
        return loss_factor * (counts - spurious) / seconds - background_per_s;
    }
    [[nodiscard]] double error_per_s() const {
        return std::hypot(loss_factor * std::sqrt(counts) / seconds, background_error);
    }
    /// cps/Bq
    [[nodiscard]] double sensitivity() const { return per_s() / (1e6 * mean_MBq); }
    [[nodiscard]] double sensitivity_error() const { return error_per_s() / (1e6 * mean_MBq); }
    [[nodiscard]] double percent() const { return 100 * sensitivity() / branching; }
    [[nodiscard]] double percent_error() const { return 100 * sensitivity_error() / branching; }
    /// Of all lines, less the expected randoms.
    [[nodiscard]] double trues_percent() const {
        const double rate =
            loss_factor * (all * (1 - randoms) - all_spurious) / seconds - all_background_per_s;
        return 1e-4 * rate / mean_MBq / branching;
    }
    [[nodiscard]] double trues_percent_error() const {
        return 1e-4 *
               std::hypot(loss_factor * std::sqrt(all) / seconds,
                          std::sqrt(all_background_per_s / background_s)) /
               mean_MBq / branching;
    }
};

/// In the sinograms and outside.
double prompts_of(const Sinograms& sinograms) {
    return std::accumulate(sinograms.counts.begin(), sinograms.counts.end(),
                           static_cast<double>(sinograms.outside));
}

/// The mean over the positions in the middle of the axis, by the trapezoidal rule: `positions` are ascending.
void add_mean(Report& report, const std::string& key, const std::string& animal, double length_mm,
              const std::vector<AtPosition>& positions) {
    std::vector<const AtPosition*> in;
    for (const AtPosition& at : positions) {
        if (std::abs(at.z_mm) <= length_mm / 2) in.push_back(&at);
    }
    if (in.size() < 2) return;
    const double range = in.back()->z_mm - in.front()->z_mm;
    double mean = 0;
    double variance = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
        const double before = in[i == 0 ? i : i - 1]->z_mm;
        const double after = in[i + 1 == in.size() ? i : i + 1]->z_mm;
        const double weight = range > 0 ? (after - before) / 2 / range : 1.0 / static_cast<double>(in.size());
        mean += weight * in[i]->percent();
        variance += std::pow(weight * in[i]->percent_error(), 2);
    }
    report.figures.push_back(
        {key,
         fmt::format("Mean over the {} of a {} ({} positions, {:.4g} to {:.4g} mm)",
                     fmt::format("{} mm", length_mm), animal, in.size(), in.front()->z_mm, in.back()->z_mm),
         mean, std::sqrt(variance), "%"});
}

void fill(Report& report, const std::vector<AtPosition>& positions) {
    const auto middle =
        std::min_element(positions.begin(), positions.end(),
                         [](const auto& a, const auto& b) { return std::abs(a.z_mm) < std::abs(b.z_mm); });
    report.figures.push_back(
        {"central_cps_per_Bq",
         fmt::format("Sensitivity at z = {:.3g} mm, the position nearest to the middle", middle->z_mm),
         middle->sensitivity(), middle->sensitivity_error(), "cps/Bq"});
    report.figures.push_back(
        {"central_percent", "Absolute sensitivity there", middle->percent(), middle->percent_error(), "%"});
    const auto best = std::max_element(positions.begin(), positions.end(), [](const auto& a, const auto& b) {
        return a.percent() < b.percent();
    });
    report.figures.push_back({"peak_percent",
                              fmt::format("Largest absolute sensitivity, at z = {:.3g} mm", best->z_mm),
                              best->percent(), best->percent_error(), "%"});
    report.beside.push_back({"central_trues_percent",
                             fmt::format("Trues of all lines at z = {:.3g} mm, per positron", middle->z_mm),
                             middle->trues_percent(), middle->trues_percent_error(), "%"});
    add_mean(report, "mouse_percent", "mouse", mouse_mm, positions);
    add_mean(report, "rat_percent", "rat", rat_mm, positions);

    ResultTable table{"positions", "Sensitivity by position of the source", {}, {}};
    table.columns = {"run",
                     "bed_mm",
                     "z_mm",
                     "duration_s",
                     "activity_MBq",
                     "counts",
                     "background_per_s",
                     "rate_per_s",
                     "rate_per_s_error",
                     "cps_per_Bq",
                     "cps_per_Bq_error",
                     "absolute_percent",
                     "absolute_percent_error",
                     "trues_percent",
                     "trues_percent_error",
                     "randoms_per_prompt",
                     "loss_factor",
                     "spurious"};
    Chart::Curve curve{"absolute sensitivity", {}, {}};
    for (const AtPosition& at : positions) {
        table.rows.push_back({at.run, at.bed_mm, at.z_mm, at.seconds, at.mean_MBq, at.counts,
                              at.background_per_s, at.per_s(), at.error_per_s(), at.sensitivity(),
                              at.sensitivity_error(), at.percent(), at.percent_error(), at.trues_percent(),
                              at.trues_percent_error(), at.randoms, at.loss_factor, at.spurious});
        curve.x.push_back(at.z_mm);
        curve.y.push_back(at.percent());
        if (at.counts < min_prompts_of_position) {
            report.warnings.push_back(
                fmt::format("{} at z = {:.3g} mm: {:.0f} counts; the standard asks for at least {:.0f}.",
                            at.run, at.z_mm, at.counts, min_prompts_of_position));
        }
        if (at.randoms > max_randoms_of_position) {
            report.warnings.push_back(
                fmt::format("{} at z = {:.3g} mm: {:.3g} % of the prompts are randoms; the standard allows 5 "
                            "% of the trues.",
                            at.run, at.z_mm, 100 * at.randoms));
        }
    }
    report.tables.push_back(std::move(table));
    Chart chart{"sensitivity", "Absolute sensitivity", "z (mm)", "absolute sensitivity (%)"};
    chart.curves.push_back(std::move(curve));
    report.charts.push_back(std::move(chart));
}

void describe(const SliceBins& bins, const SensitivityOptions& options,
              const std::vector<AtPosition>& positions, Report& report) {
    const std::vector<std::string> of_runs = report.procedure;
    report.procedure = {
        fmt::format("Prompts are rebinned to {} slices of {:.4g} mm (SSRB). In each angle, bins further than "
                    "1 cm from the largest one are set to zero; "
                    "the counts of all slices are added up. The rate, less that of the background, is "
                    "divided by the mean activity; the absolute sensitivity also by "
                    "the positrons per decay, {:.4g}.",
                    bins.slices(), bins.thickness_mm(), positions.front().branching),
        "Beside the standard: trues_percent has the prompts of all lines, without the limit of 1 cm, less "
        "the randoms "
        "expected from the singles and less all prompts of the background.",
        "The place of the source along the axis is the middle of the counts around the slice that has the "
        "most."};
    report.procedure.insert(report.procedure.end(), of_runs.begin(), of_runs.end());
    report.deviations = {
        "The largest bin of an angle is looked for in the sum of all slices, not in each slice. Angles that "
        "gaps between "
        "blocks leave without a line through the source take its place from the others.",
        "The sensitivity of a position has the counts of all slices, so that it is that of the scanner for a "
        "source there.",
        "The means over the central 70 and 150 mm are taken over the positions that were measured, by the "
        "trapezoidal rule."};
    if (!options.background)
        report.deviations.emplace_back("No background was measured (--background): it is taken as none.");
    if (positions.front().branching != 0.9060) {
        report.deviations.push_back(fmt::format(
            "The nuclide is not Na-22, whose 0.9060 positrons per decay the standard uses: {:.4g}.",
            positions.front().branching));
    }
}

}  // namespace

int sensitivity(const SensitivityOptions& options) {
    results::check_output(options.output, options.force);
    Report report{"sensitivity", "Sensitivity", standard};
    const auto runs = runs_of(options, options.position_channel.has_value());
    const config::Scanner& scanner = runs.front()->scanner();
    const config::DepthOfInteraction depth = petlm::depth_of_interaction(options.depth_mm, scanner);
    const SliceBins bins(scanner, depth, config::extent_of(scanner).transaxial_pitch_mm / 2);
    Sinograms background(bins);
    double background_s = 0;
    if (options.background) {
        const auto background_run = background_of(*options.background, options, *runs.front());
        const NemaRun& run = *background_run;
        background_s = run.seconds_of(run.whole());
        run.for_each({run.whole()}, bins, [&](std::size_t, const Sinograms& found) { background = found; });
        report.inputs.push_back("Background: " + run.sentence());
    }
    std::vector<AtPosition> positions;
    for (const auto& run : runs) {
        if (!run->activity().at_start_MBq) {
            throw petlm::UsageError(run->source().target().string() +
                                    ": the activity of the source is not known: the operator did not say it "
                                    "at the start of the run; give it with --activity-mbq");
        }
        const NemaSpurious spurious(*run, bins, depth);
        std::string of_loss;
        bool seconds_known = false;
        try {
            of_loss = ' ' + IntervalSeconds(*run, run->whole()).loss_sentence();
            seconds_known = true;
        } catch (const petlm::BadInput& error) {
            report.warnings.push_back(
                std::string("The share of randoms is not known, and loss of data is not "
                            "corrected: ") +
                error.what());
        }
        std::vector<petlm::Interval> intervals;
        std::vector<double> beds;
        if (options.position_channel) {
            for (const auto& at : run->positions(*options.position_channel)) {
                intervals.push_back(at.interval);
                beds.push_back(at.bed_mm);
            }
        } else {
            intervals.push_back(run->whole());
            const auto said = run->source().said_by_operator();
            beds.push_back(said.is_object() ? said.value("bed_mm", unknown) : unknown);
        }
        run->for_each(intervals, bins, [&](std::size_t i, const Sinograms& sinograms) {
            const auto mask = mask_of(bins, sinograms);
            const auto counts = counts_in(bins, sinograms, mask);
            AtPosition at;
            at.run = run->name();
            at.bed_mm = beds[i];
            at.counts = sum_of(counts);
            if (!(at.counts > 0)) {
                report.warnings.push_back(
                    fmt::format("{}: no counts at position {} of the bed; left out.", at.run, i + 1));
                return;
            }
            at.all = prompts_of(sinograms);
            at.z_mm = place_of(bins, counts);
            at.seconds = run->seconds_of(intervals[i]);
            at.mean_MBq = run->mean_MBq(intervals[i]);
            at.branching = branching_of(run->activity());
            if (seconds_known) {
                const IntervalSeconds seconds(*run, intervals[i]);
                at.randoms = seconds.randoms() / at.all;
                at.loss_factor = seconds.loss_factor();
            }
            if (background_s > 0) {
                const double masked = sum_of(counts_in(bins, background, mask));
                at.background_per_s = masked / background_s;
                at.background_error = std::sqrt(masked) / background_s;
                at.background_s = background_s;
                at.all_background_per_s = prompts_of(background) / background_s;
            }
            const double pairs = at.all * (1 - (seconds_known ? at.randoms : 0));
            const auto expected = spurious.expect(intervals[i], point_source_at(at.z_mm), {}, pairs);
            at.all_spurious = expected.all;
            for (std::size_t bin = 0; bin < expected.of_bin.size(); ++bin)
                at.spurious += mask[bin % mask.size()] ? expected.of_bin[bin] : 0;
            positions.push_back(at);
        });
        if (const auto said = spurious.sentence(); !said.empty()) report.procedure.push_back(said);
        report.inputs.push_back(run->sentence() + of_loss);
        add_warnings(*run, report.warnings);
    }
    if (positions.empty()) throw petlm::BadInput("no coincidences of a source in any run");
    std::stable_sort(positions.begin(), positions.end(),
                     [](const auto& a, const auto& b) { return a.z_mm < b.z_mm; });
    describe(bins, options, positions, report);
    fill(report, positions);
    results::publish(report, options.output, options.force, options.as_json);
    return petlm::ok;
}

}  // namespace petacq::nema

// petlm nema count-rate: count losses, randoms and NECR of NEMA NU 4-2008.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/nema/line_source.hpp"

namespace petacq::nema {
namespace {

/// Per second. Errors are standard deviations.
struct Rates {
    double total = 0;
    double total_error = 0;
    double trues = 0;
    double trues_error = 0;
    double randoms = 0;  ///< expected from the singles
    Ratio randoms_by_delayeds;
    Ratio randoms_by_scatter_fraction;
    double scatter = 0;
    double scatter_error = 0;
    double intrinsic = 0;
    double necr = 0;
    double necr_error = 0;
    double necr_subtracted = 0;
    double necr_of_sums = 0;
    Ratio scatter_fraction;
};

/// As if the scatter fraction of the low activities held at all: the standard's randoms for scanners
/// without delayed coincidences. Counts.
Ratio randoms_by(const Ratio& fraction, const StripCounts& counts, double intrinsic) {
    const double per_true = fraction.value / (1 - fraction.value);
    const double of_fraction =
        counts.trues() * fraction.error / ((1 - fraction.value) * (1 - fraction.value));
    const double variance = counts.variance_of_background() +
                            per_true * per_true * counts.variance_of_trues() -
                            2 * per_true * counts.covariance() + of_fraction * of_fraction;
    return {counts.background - intrinsic - per_true * counts.trues(), std::sqrt(std::max(0.0, variance))};
}

/// trues² / total, and its variance: with the share s of trues,
/// d(trues² / total) = (2 s - s²) d trues - s² d background.
std::pair<double, double> noise_equivalent(const StripCounts& counts) {
    if (!(counts.total > 0)) return {0, 0};
    const double share = counts.trues() / counts.total;
    const double of_trues = 2 * share - share * share;
    const double of_rest = share * share;
    const double variance = of_trues * of_trues * counts.variance_of_trues() +
                            of_rest * of_rest * counts.variance_of_background() -
                            2 * of_trues * of_rest * counts.covariance();
    return {share * counts.trues(), std::max(0.0, variance)};
}

Rates rates_of(const LineAcquisition& a, const LineMeasurement& measured, const Ratio& of_low_activity) {
    const StripCounts& sum = a.sum;
    const double per_count = a.loss_factor / a.seconds;
    Rates r;
    r.total = sum.total * per_count;
    r.total_error = std::sqrt(sum.total) * per_count;
    r.trues = sum.trues() * per_count;
    r.trues_error = std::sqrt(sum.variance_of_trues()) * per_count;
    r.randoms = a.randoms_sum * per_count;
    r.intrinsic = measured.intrinsic_sum_per_s;
    r.scatter = r.total - r.trues - r.randoms - r.intrinsic - a.spurious_sum * per_count;
    r.scatter_error = std::sqrt(sum.variance_of_background()) * per_count;
    r.necr_of_sums = noise_equivalent(sum).first * per_count;
    double variance = 0;
    for (std::size_t i = 0; i < a.slices.size(); ++i) {
        const StripCounts& slice = a.slices[i];
        if (!(slice.total > 0)) continue;
        const auto [counts, variance_of_slice] = noise_equivalent(slice);
        r.necr += counts * per_count;
        r.necr_subtracted += counts * per_count * slice.total / (slice.total + a.randoms[i]);
        variance += variance_of_slice;
    }
    r.necr_error = std::sqrt(variance) * per_count;
    const Ratio by_fraction = randoms_by(of_low_activity, sum, r.intrinsic / per_count + a.spurious_sum);
    r.randoms_by_scatter_fraction = {by_fraction.value * per_count, by_fraction.error * per_count};
    r.randoms_by_delayeds = {a.randoms_of_delayeds.value * per_count,
                             a.randoms_of_delayeds.error * per_count};
    r.scatter_fraction = background_share(sum, a.randoms_sum + a.spurious_sum + r.intrinsic / per_count);
    return r;
}

/// The largest value, and the activity at which it was found.
void add_peak(Report& report, const std::string& key, const std::string& name,
              const std::vector<double>& values, const std::vector<double>& errors,
              const std::vector<double>& activities, double volume_ml) {
    const auto at = static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
    report.figures.push_back({key + "_per_s", "Largest " + name, values[at], errors[at], "1/s"});
    if (std::isnan(activities[at])) return;
    report.figures.push_back({key + "_at_MBq", "    at a mean activity of", activities[at], unknown, "MBq"});
    report.figures.push_back({key + "_at_kBq_per_ml", "    at a mean concentration of",
                              1e3 * activities[at] / volume_ml, unknown, "kBq/ml"});
    const bool highest = activities[at] == *std::max_element(activities.begin(), activities.end());
    if (highest && values.size() > 1) {
        report.warnings.push_back("The largest " + name +
                                  " was found at the highest activity: the peak may lie above it.");
    }
}

}  // namespace

int count_rate(const CountRateOptions& options) {
    results::check_output(options.output, options.force);
    Report report{"count-rate", "Count rates", standard};
    LineMeasurement measured = measure(options, report);
    describe(options, measured, report);
    if (measured.acquisitions.empty()) throw petlm::BadInput("no run has recorded for any time");
    std::stable_sort(measured.acquisitions.begin(), measured.acquisitions.end(),
                     [](const auto& a, const auto& b) { return a.mean_MBq < b.mean_MBq; });
    const double volume = measured.phantom->volume_ml();
    report.procedure.push_back(
        "Activities are means over an acquisition, with the decay within it; the concentration is the "
        "activity "
        "divided by the volume of the phantom. NECR = trues² / total; the other NECR, trues² / (total + "
        "randoms), "
        "holds where delayed coincidences are subtracted. Both are computed for each slice and added up. "
        "Rates "
        "are those that would have arrived: they are multiplied with loss_factor for the data of the boards "
        "that "
        "did not.");
    report.procedure.emplace_back(
        "Without delayed coincidences the standard takes total - trues / (1 - scatter fraction) as randoms, "
        "with "
        "the scatter fraction of the acquisitions whose randoms are below 1 % of the trues: "
        "randoms_by_scatter_fraction. It takes the scatter fraction as the same at all activities, and has "
        "the noise of both. randoms_by_delayeds are the recorded delayeds times their mean weight in the "
        "run. "
        "Beside them, randoms are those expected from the singles; scatter and the NECR of subtracted "
        "delayed coincidences use them.");
    report.deviations.emplace_back(
        "randoms_by_scatter_fraction has the scatter fraction of all slices together, not of each slice: at "
        "the ends "
        "a slice has too few counts for it.");
    report.procedure.emplace_back(
        "Beside the standard: necr_of_sums is trues² / total of all slices together. It is less where the "
        "slices "
        "differ, and noise does not make it larger.");
    const LowActivity low = low_activity_of(measured);
    const Ratio of_low_activity = background_share(low.sum, measured.intrinsic_sum_per_s * low.seconds);
    ResultTable table{"rates", "Rates, per second", {}, {}};
    table.columns = {"run",
                     "duration_s",
                     "activity_MBq",
                     "concentration_kBq_per_ml",
                     "total",
                     "total_error",
                     "trues",
                     "trues_error",
                     "randoms",
                     "randoms_by_delayeds",
                     "randoms_by_delayeds_error",
                     "randoms_by_scatter_fraction",
                     "randoms_by_scatter_fraction_error",
                     "scatter",
                     "scatter_error",
                     "intrinsic",
                     "necr",
                     "necr_error",
                     "necr_delayeds_subtracted",
                     "necr_of_sums",
                     "scatter_fraction",
                     "scatter_fraction_error",
                     "loss_factor"};
    std::vector<double> activities;
    std::vector<double> trues;
    std::vector<double> trues_errors;
    std::vector<double> necr;
    std::vector<double> necr_errors;
    double largest_of_sums = 0;
    Chart chart{"rates", "Count rates", "mean activity (MBq)", "rate (1/s)"};
    chart.curves = {{"total", {}, {}}, {"trues", {}, {}}, {"randoms", {}, {}}, {"NECR", {}, {}}};
    for (const LineAcquisition& a : measured.acquisitions) {
        const Rates r = rates_of(a, measured, of_low_activity);
        table.rows.push_back({a.run,
                              a.seconds,
                              a.mean_MBq,
                              1e3 * a.mean_MBq / volume,
                              r.total,
                              r.total_error,
                              r.trues,
                              r.trues_error,
                              r.randoms,
                              r.randoms_by_delayeds.value,
                              r.randoms_by_delayeds.error,
                              r.randoms_by_scatter_fraction.value,
                              r.randoms_by_scatter_fraction.error,
                              r.scatter,
                              r.scatter_error,
                              r.intrinsic,
                              r.necr,
                              r.necr_error,
                              r.necr_subtracted,
                              r.necr_of_sums,
                              r.scatter_fraction.value,
                              r.scatter_fraction.error,
                              a.loss_factor});
        activities.push_back(a.mean_MBq);
        trues.push_back(r.trues);
        trues_errors.push_back(r.trues_error);
        necr.push_back(r.necr);
        necr_errors.push_back(r.necr_error);
        largest_of_sums = std::max(largest_of_sums, r.necr_of_sums);
        const std::array values = {r.total, r.trues, r.randoms, r.necr};
        for (std::size_t i = 0; i < values.size(); ++i) {
            chart.curves[i].x.push_back(std::isnan(a.mean_MBq) ? static_cast<double>(activities.size())
                                                               : a.mean_MBq);
            chart.curves[i].y.push_back(values.at(i));
        }
    }
    add_peak(report, "trues", "rate of trues", trues, trues_errors, activities, volume);
    add_peak(report, "necr", "NECR", necr, necr_errors, activities, volume);
    report.beside.push_back(
        {"necr_of_sums_per_s", "Largest NECR of all slices together", largest_of_sums, unknown, "1/s"});
    if (std::isnan(of_low_activity.value)) {
        report.warnings.emplace_back(
            "No acquisition has randoms below 1 % of the trues: the randoms that the standard takes without "
            "delayed coincidences are not known.");
    }
    if (std::any_of(activities.begin(), activities.end(), [](double a) { return std::isnan(a); })) {
        report.warnings.push_back(
            "The activity of some runs is not known: the operator did not say it at the start, and "
            "--activity-mbq does not. The "
            "horizontal axis of the picture is then the number of the acquisition.");
    }
    report.tables.push_back(std::move(table));
    report.charts.push_back(std::move(chart));
    results::publish(report, options.output, options.force, options.as_json);
    return petlm::ok;
}

}  // namespace petacq::nema

// petlm nema count-rate: NEMA NU 4-2008, clause 4, count losses and randoms.
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
    double randoms = 0;
    double scatter = 0;
    double scatter_error = 0;
    double intrinsic = 0;
    double necr = 0;
    double necr_error = 0;
    double necr_subtracted = 0;
    Ratio scatter_fraction;
};

Rates rates_of(const LineAcquisition& a, double intrinsic_per_s) {
    const StripCounts& sum = a.sum;
    const double per_count = a.loss_factor / a.seconds;
    Rates r;
    r.total = sum.total * per_count;
    r.total_error = std::sqrt(sum.total) * per_count;
    r.trues = sum.trues() * per_count;
    r.trues_error = std::sqrt(sum.variance_of_trues()) * per_count;
    r.randoms = a.randoms_sum * per_count;
    r.intrinsic = intrinsic_per_s;
    r.scatter = r.total - r.trues - r.randoms - r.intrinsic;
    r.scatter_error = std::sqrt(sum.variance_of_background()) * per_count;
    r.necr = r.total > 0 ? r.trues * r.trues / r.total : 0;
    // With the share s of trues: d(trues^2 / total) = (2 s - s^2) d trues - s^2 d background.
    const double share = r.total > 0 ? r.trues / r.total : 0;
    const double of_trues = 2 * share - share * share;
    const double of_rest = share * share;
    const double variance = of_trues * of_trues * sum.variance_of_trues() +
                            of_rest * of_rest * sum.variance_of_background() -
                            2 * of_trues * of_rest * sum.covariance();
    r.necr_error = std::sqrt(std::max(0.0, variance)) * per_count;
    r.necr_subtracted = r.total > 0 ? r.trues * r.trues / (r.total + r.randoms) : 0;
    r.scatter_fraction = background_share(sum, a.randoms_sum + r.intrinsic / per_count);
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
    check_output(options.output, options.force);
    Report report{"count-rate", "Count rates", "4 (Scatter fraction, count losses and randoms)"};
    LineMeasurement measured = measure(options, report);
    describe(options, measured, report);
    if (measured.acquisitions.empty()) throw petlm::BadInput("no run has recorded for any time");
    std::stable_sort(measured.acquisitions.begin(), measured.acquisitions.end(),
                     [](const auto& a, const auto& b) { return a.mean_MBq < b.mean_MBq; });
    const double volume = measured.phantom->volume_ml();
    report.procedure.push_back(
        "Activities are means over an acquisition, with the decay within it; the concentration is the "
        "activity divided by "
        "the volume of the phantom. NECR = trues² / total; the other NECR, trues² / (total + randoms), holds "
        "where "
        "delayed coincidences are subtracted. Rates are those that would have arrived: they are multiplied "
        "with "
        "loss_factor for the data of the boards that did not.");

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
                     "scatter",
                     "scatter_error",
                     "intrinsic",
                     "necr",
                     "necr_error",
                     "necr_delayeds_subtracted",
                     "scatter_fraction",
                     "scatter_fraction_error",
                     "loss_factor"};
    std::vector<double> activities;
    std::vector<double> trues;
    std::vector<double> trues_errors;
    std::vector<double> necr;
    std::vector<double> necr_errors;
    Chart chart{"rates", "Count rates", "mean activity (MBq)", "rate (1/s)"};
    chart.curves = {{"total", {}, {}}, {"trues", {}, {}}, {"randoms", {}, {}}, {"NECR", {}, {}}};
    for (const LineAcquisition& a : measured.acquisitions) {
        const Rates r = rates_of(a, measured.intrinsic_sum_per_s);
        table.rows.push_back({a.run, a.seconds, a.mean_MBq, 1e3 * a.mean_MBq / volume, r.total, r.total_error,
                              r.trues, r.trues_error, r.randoms, r.scatter, r.scatter_error, r.intrinsic,
                              r.necr, r.necr_error, r.necr_subtracted, r.scatter_fraction.value,
                              r.scatter_fraction.error, a.loss_factor});
        activities.push_back(a.mean_MBq);
        trues.push_back(r.trues);
        trues_errors.push_back(r.trues_error);
        necr.push_back(r.necr);
        necr_errors.push_back(r.necr_error);
        const std::array values = {r.total, r.trues, r.randoms, r.necr};
        for (std::size_t i = 0; i < values.size(); ++i) {
            chart.curves[i].x.push_back(std::isnan(a.mean_MBq) ? static_cast<double>(activities.size())
                                                               : a.mean_MBq);
            chart.curves[i].y.push_back(values.at(i));
        }
    }
    add_peak(report, "trues", "rate of trues", trues, trues_errors, activities, volume);
    add_peak(report, "necr", "NECR", necr, necr_errors, activities, volume);
    if (std::any_of(activities.begin(), activities.end(), [](double a) { return std::isnan(a); })) {
        report.warnings.push_back(
            "The activity of some runs is not known: the operator did not say it at the start, and "
            "--activity-mbq does not. The "
            "horizontal axis of the picture is then the number of the acquisition.");
    }
    report.tables.push_back(std::move(table));
    report.charts.push_back(std::move(chart));
    publish(report, options.output, options.force);
    return petlm::ok;
}

}  // namespace petacq::nema

// petlm nema scatter: the scatter fraction of NEMA NU 4-2008.
#include <fmt/format.h>

#include <cmath>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/nema/line_source.hpp"

namespace petacq::nema {
namespace {

constexpr double min_prompts_of_scatter = 500'000;

ResultTable table_of_acquisitions(const LineMeasurement& measured) {
    ResultTable table{"acquisitions", "Acquisitions", {}, {}};
    table.columns = {"run",   "duration_s",          "activity_MBq",           "prompts",
                     "trues", "scatter_and_randoms", "randoms_expected",       "randoms_per_true",
                     "used",  "scatter_fraction",    "scatter_fraction_error", "spurious"};
    for (const LineAcquisition& a : measured.acquisitions) {
        const Ratio fraction = background_share(a.sum, a.randoms_sum + a.spurious_sum);
        table.rows.push_back({a.run, a.seconds, a.mean_MBq, a.sum.total, a.sum.trues(), a.sum.background,
                              a.randoms_sum, a.randoms_sum / a.sum.trues(), a.few_randoms() ? "yes" : "no",
                              fraction.value, fraction.error, a.spurious_sum});
    }
    return table;
}

}  // namespace

int scatter_fraction(const CountRateOptions& options) {
    results::check_output(options.output, options.force);
    Report report{"scatter", "Scatter fraction", standard};
    const LineMeasurement measured = measure(options, report);
    describe(options, measured, report);

    // Of the acquisitions with few randoms, all together.
    const LowActivity low = low_activity_of(measured);
    const StripCounts& all = low.sum;
    if (!(all.total > 0)) {
        double fewest = INFINITY;
        for (const LineAcquisition& a : measured.acquisitions) {
            if (a.sum.trues() > 0) fewest = std::min(fewest, a.randoms_sum / a.sum.trues());
        }
        throw petlm::BadInput(
            fmt::format("the scatter fraction needs an acquisition of the line source with randoms below 1 % "
                        "of the trues; the "
                        "lowest has {:.3g} %",
                        100 * fewest));
    }
    if (all.total < min_prompts_of_scatter) {
        report.warnings.push_back(fmt::format(
            "{:.0f} prompts were used; the standard asks for at least {:.0f} in each acquisition.", all.total,
            min_prompts_of_scatter));
    }
    report.procedure.push_back(
        "The scatter fraction is (scatter + randoms) / prompts of the acquisitions with randoms below 1 % of "
        "the "
        "trues, added up. The other one has the expected randoms, and the intrinsic background, subtracted.");

    const double known = measured.intrinsic_sum_per_s * low.seconds + low.spurious_sum;
    const Ratio fraction = background_share(all, known);
    const Ratio without = background_share(all, known + low.randoms);
    report.figures = {
        {"scatter_fraction", "Scatter fraction", 100 * fraction.value, 100 * fraction.error, "%"},
        {"scatter_fraction_without_randoms", "The same, less the expected randoms", 100 * without.value,
         100 * without.error, "%"},
        {"prompts", "Prompts used", all.total, std::sqrt(all.total), ""},
        {"randoms_per_true", "Randoms per true", 100 * low.randoms / all.trues(), unknown, "%"}};

    report.procedure.push_back(fmt::format(
        "petacqd shows the live NECR with \"scatter_fraction\": {:.4f} in the section \"estimates\" of "
        "its configuration.",
        without.value));
    report.tables.push_back(table_of_acquisitions(measured));
    ResultTable by_slice{
        "slices",
        "By slice",
        {"z_mm", "prompts", "scatter_and_randoms", "scatter_fraction", "scatter_fraction_error"},
        {}};
    Chart chart{"scatter-fraction", "Scatter fraction by slice", "z (mm)", "scatter fraction (%)"};
    Chart::Curve curve{"scatter fraction", {}, {}};
    for (std::size_t i = 0; i < low.slices.size(); ++i) {
        const StripCounts& s = low.slices[i];
        const double z = measured.bins.slice_mm(measured.slices.from + i);
        const Ratio of_slice =
            background_share(s, measured.intrinsic_per_s[i] * low.seconds + low.spurious[i]);
        by_slice.rows.push_back({z, s.total, s.background, of_slice.value, of_slice.error});
        curve.x.push_back(z);
        curve.y.push_back(100 * of_slice.value);
    }
    chart.curves.push_back(std::move(curve));
    report.tables.push_back(std::move(by_slice));
    report.charts.push_back(std::move(chart));
    results::publish(report, options.output, options.force, options.as_json);
    return petlm::ok;
}

}  // namespace petacq::nema

// petlm nema resolution: the spatial resolution of NEMA NU 4-2008.
#include <fmt/format.h>

#include <cmath>

#include "config/nuclides/nuclides.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/nema/nema.hpp"
#include "tools/petlm/nema/point_image.hpp"
#include "tools/petlm/nema/standard.hpp"
#include "tools/petlm/reconstruction/corrections/module_losses.hpp"

namespace petacq::nema {
namespace {

constexpr std::size_t max_charts = 8;
constexpr double min_prompts = 100'000;

void add_row(ResultTable& table, const NemaRun& run, const PointImage& image, const PointWidths& w) {
    const auto& at = image.place_mm();
    std::vector<Cell> row = {run.name(), at[0], at[1], at[2], std::hypot(at[0], at[1]), image.prompts()};
    for (const auto width : {&Widths::fwhm, &Widths::fwtm}) {
        for (std::size_t direction = 0; direction < directions; ++direction) {
            row.emplace_back(w.widths[direction].*width);
            row.emplace_back(w.errors[direction].*width);
        }
    }
    for (const double fwhm : w.fwhm_of_projection)
        row.emplace_back(fwhm);
    table.rows.push_back(std::move(row));
}

Chart chart_of(const NemaRun& run, const PointImage& image, const PointWidths& w, std::size_t number) {
    const auto& at = image.place_mm();
    Chart chart{
        fmt::format("response-{}", number),
        fmt::format("{}: response functions at ({:.3g}, {:.3g}, {:.3g}) mm", run.name(), at[0], at[1], at[2]),
        "distance from the peak (mm)", "share of the peak"};
    for (std::size_t direction = 0; direction < directions; ++direction) {
        Chart::Curve curve{direction_names[direction], {}, {}};
        const auto& profile = w.profiles[direction];
        for (std::size_t i = 0; i < profile.values.size(); ++i) {
            curve.x.push_back(static_cast<double>(i) * profile.step_mm - w.widths[direction].peak);
            curve.y.push_back(profile.values[i] / w.widths[direction].height);
        }
        chart.curves.push_back(std::move(curve));
    }
    return chart;
}

/// What the boards lost; a warning if it may change the widths.
std::string named_loss(const NemaRun& run, std::vector<std::string>& warnings) {
    std::string why;
    const auto losses = petlm::PairLosses::of(run.source(), run.source().coverage(), run.scanner(), why);
    if (!losses || losses->loss().arrived.empty()) {
        warnings.push_back(run.name() + ": whether data of the boards were lost is not known" +
                           (losses ? "." : ": " + why + ".") + petlm::lost_datagrams(run.source()));
        return "";
    }
    if (losses->loss().lost > 0) {
        warnings.push_back(fmt::format(
            "{}: {:.3g} % of the data of the boards did not arrive. Lines are counted as they were found, by "
            "pair of BDMs up to {:.4g} times too few; if they differ, so may the widths.",
            run.name(), 100 * losses->loss().lost, losses->loss().largest_factor));
    }
    return losses->loss().lost > 0 ? "" : petlm::sentence_of(losses->loss());
}

}  // namespace

int resolution(const ResolutionOptions& options) {
    results::check_output(options.output, options.force);
    Report report{"resolution", "Spatial resolution", standard};
    const auto runs = runs_of(options);
    const config::Scanner& scanner = runs.front()->scanner();
    const config::DepthOfInteraction depth = petlm::depth_of_interaction(options.depth_mm, scanner);
    ResultTable table{"widths", "Widths, mm", {"run", "x_mm", "y_mm", "z_mm", "radial_mm", "prompts"}, {}};
    for (const char* width : {"fwhm", "fwtm"}) {
        for (const char* direction : direction_names) {
            table.columns.push_back(fmt::format("{}_{}_mm", direction, width));
            table.columns.push_back(table.columns.back() + "_error");
        }
    }
    for (std::size_t direction = 0; direction < 2; ++direction)
        table.columns.push_back(fmt::format("{}_fwhm_of_projection_mm", direction_names[direction]));
    for (const auto& run : runs) {
        const PointImage image(*run, depth, options.max_ring_difference.value_or(UINT32_MAX));
        const PointWidths widths = image.widths();
        report.inputs.push_back(run->sentence() + ' ' + named_loss(*run, report.warnings));
        if (const auto note = config::prompt_gamma_note(run->activity().nuclide); !note.empty())
            report.inputs.push_back(note + " They are not corrected here.");
        add_warnings(*run, report.warnings);
        add_row(table, *run, image, widths);
        if (image.prompts() < min_prompts) {
            report.warnings.push_back(
                fmt::format("{}: {:.0f} prompts; the standard asks for at least {:.0f}.", run->name(),
                            image.prompts(), min_prompts));
        }
        if (report.charts.size() < max_charts)
            report.charts.push_back(chart_of(*run, image, widths, report.charts.size() + 1));
        if (runs.size() == 1) {
            for (std::size_t d = 0; d < directions; ++d) {
                report.figures.push_back({fmt::format("fwhm_{}_mm", direction_names[d]),
                                          fmt::format("FWHM, {}", direction_names[d]), widths.widths[d].fwhm,
                                          widths.errors[d].fwhm, "mm"});
                report.figures.push_back({fmt::format("fwtm_{}_mm", direction_names[d]),
                                          fmt::format("FWTM, {}", direction_names[d]), widths.widths[d].fwtm,
                                          widths.errors[d].fwtm, "mm"});
            }
            for (std::size_t d = 0; d < widths.fwhm_of_projection.size(); ++d) {
                report.beside.push_back({fmt::format("fwhm_of_projection_{}_mm", direction_names[d]),
                                         fmt::format("FWHM of the projections, {}", direction_names[d]),
                                         widths.fwhm_of_projection[d], unknown, "mm"});
            }
        }
        if (&run == &runs.front()) report.procedure = image.procedure();
    }
    report.procedure.push_back(
        fmt::format("Photons interact {}. Each run is one point source, which is looked for in the image.",
                    depth.text()));
    report.deviations = {
        (options.max_ring_difference
             ? fmt::format("Lines of rings up to {} apart are used", *options.max_ring_difference)
             : std::string("Lines of all rings are used (--max-ring-difference)")) +
            ": away from the axis, single-slice rebinning of oblique lines makes the axial width larger.",
        "Errors come from Poisson samples of the sinograms. The widths include the size of the source and "
        "the range of its positrons."};
    report.tables.push_back(std::move(table));
    results::publish(report, options.output, options.force, options.as_json);
    return petlm::ok;
}

}  // namespace petacq::nema

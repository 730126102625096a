#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/petlm/reconstruction/frames/curves.hpp"
#include "tools/report/axes.hpp"
#include "tools/report/canvas.hpp"

namespace petacq::frames {
namespace {

constexpr double height = 340;
constexpr std::uint32_t pixels = 1120;

struct TimeScale {
    const char* name;
    double seconds;
};

TimeScale scale_for(double seconds) {
    if (seconds > 3 * 3600) return {"h", 3600};
    if (seconds > 600) return {"min", 60};
    return {"s", 1};
}

}  // namespace

std::string curves_png(const FramePlan& plan, const daemon::Coverage& coverage,
                       const std::vector<Region>& regions, const CurveValues& values) {
    std::vector<double> middles;
    report::Axis x{"phase of the cycle", 0, 1};
    if (plan.gates) {
        for (std::size_t f = 0; f < plan.list.size(); ++f)
            middles.push_back((static_cast<double>(f) + 0.5) / static_cast<double>(plan.list.size()));
    } else {
        const double from = coverage.since_reference_s(plan.list.front().span.start);
        const double to = coverage.since_reference_s(plan.list.back().span.end);
        const TimeScale scale = scale_for(to);
        x = {fmt::format("time since the start of the run ({})", scale.name),
             std::min(from, 0.0) / scale.seconds, to / scale.seconds};
        for (const Frame& frame : plan.list) {
            const double sum =
                coverage.since_reference_s(frame.span.start) + coverage.since_reference_s(frame.span.end);
            middles.push_back(sum / 2 / scale.seconds);
        }
    }
    double most = 0;
    for (const auto& curve : values.means) {
        for (const double mean : curve)
            most = std::isfinite(mean) ? std::max(most, mean) : most;
    }
    const std::array largest{most};
    const report::Draw draw = [&](cairo_t* cairo, const report::Theme& theme) {
        const std::array colours = {theme.prompts, theme.trues, theme.delayeds, theme.singles};
        report::Plot plot(cairo, theme, {0, 0, report::picture_width, height}, x,
                          report::count_axis(values.unit, {largest}), {0, report::legend_height});
        std::vector<report::LegendEntry> legend;
        for (std::size_t r = 0; r < regions.size(); ++r) {
            const report::Pen pen{colours.at(r % colours.size()), false, r / colours.size() % 2 == 1};
            plot.points(middles, values.means[r], pen);
            legend.push_back({regions[r].name(), pen});
        }
        plot.legend(legend);
    };
    return report::png_of(draw, height, report::light_theme(), "Activity in regions", pixels);
}

}  // namespace petacq::frames

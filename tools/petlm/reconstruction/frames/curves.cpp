#include "tools/petlm/reconstruction/frames/curves.hpp"

#include <fmt/format.h>

#include <cmath>

namespace petacq::frames {
namespace {

std::string number_or_nothing(double value) {
    return std::isfinite(value) ? fmt::format("{:.7g}", value) : "";
}

/// When a frame was: times, or phases of a cycle.
std::string when(const FramePlan& plan, const daemon::Coverage& coverage, std::size_t frame) {
    if (plan.gates) {
        const auto count = static_cast<double>(plan.list.size());
        return fmt::format("{:.7g},{:.7g}", static_cast<double>(frame) / count,
                           static_cast<double>(frame + 1) / count);
    }
    const gpu::TickRange& span = plan.list[frame].span;
    return fmt::format("{:.9g},{:.9g}", coverage.since_reference_s(span.start),
                       static_cast<double>(span.ticks()) * coverage.tick_ps * 1e-12);
}

}  // namespace

std::string curves_csv(const FramePlan& plan, const daemon::Coverage& coverage,
                       const std::vector<Region>& regions, const CurveValues& values) {
    std::string text = fmt::format("region,frame,{},recorded_s,volume_ml,mean,standard_error,unit\n",
                                   plan.gates ? "phase_from,phase_to" : "start_s,duration_s");
    for (std::size_t r = 0; r < regions.size(); ++r) {
        for (std::size_t f = 0; f < plan.list.size(); ++f) {
            text += fmt::format("{},{},{},{:.9g},{:.6g},{},{},{}\n", regions[r].name(), f + 1,
                                when(plan, coverage, f), values.recorded_s[f], regions[r].volume_ml(),
                                number_or_nothing(values.means[r][f]), number_or_nothing(values.errors[r][f]),
                                values.unit);
        }
    }
    return text;
}

}  // namespace petacq::frames

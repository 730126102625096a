#include "tools/petlm/reconstruction/frames/frames.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/frames/curves.hpp"
#include "tools/petlm/reconstruction/frames/frame_maker.hpp"
#include "tools/petlm/reconstruction/frames/plan.hpp"
#include "tools/petlm/reconstruction/frames/regions.hpp"
#include "tools/petlm/reconstruction/frames/sidecar.hpp"
#include "tools/petlm/reconstruction/image/positions.hpp"
#include "tools/petlm/reconstruction/image/setup.hpp"
#include "tools/petlm/reconstruction/image/volume.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/report/cairo.hpp"

namespace petacq::petlm {
namespace {

/// The mean distance between the starts of frames that follow each other; of phases, their mean length.
nifti::Series series_of(const frames::FramePlan& plan, const daemon::Coverage& coverage) {
    const auto count = static_cast<double>(plan.list.size());
    if (plan.gates) return {plan.list.size(), 0, plan.gates->period_s / count};
    const double start = coverage.since_reference_s(plan.list.front().span.start);
    return {plan.list.size(), start, (coverage.since_reference_s(plan.list.back().span.end) - start) / count};
}

std::string frame_line(const frames::FramePlan& plan, const daemon::Coverage& coverage, std::size_t i,
                       const frames::FrameReport& report) {
    const frames::Frame& frame = plan.list[i];
    const std::string when =
        plan.gates ? fmt::format("phase {} of {}", i + 1, plan.list.size())
                   : fmt::format("{:.6g} to {:.6g} s", coverage.since_reference_s(frame.span.start),
                                 coverage.since_reference_s(frame.span.end));
    if (!report.data) return fmt::format("Frame {}: {}: no values, as {}.", i + 1, when, report.why_none);
    const double asked = static_cast<double>(frame.span.ticks()) * coverage.tick_ps * 1e-12;
    const bool part = !plan.gates && report.recorded_s < asked * (1 - 1e-4);
    const std::string pairs =
        report.share_of_pairs < 1
            ? fmt::format(
                  ", of which those of 1 in {} pairs of crystals fitted into memory (--max-memory-gb)",
                  std::llround(1 / report.share_of_pairs))
            : "";
    return fmt::format("Frame {}: {}, {}{:.6g} s recorded, {} prompts{}.", i + 1, when, part ? "only " : "",
                       report.recorded_s, report.prompts, pairs);
}

/// The unit of the means of the frames.
std::string unit_of(const std::vector<frames::FrameReport>& reports) {
    for (const frames::FrameReport& report : reports) {
        if (!report.data) continue;
        const image::Quantity& quantity = report.report.quantity;
        if (!quantity.activity) return "decays per voxel and s";
        return quantity.calibrated ? "kBq/ml" : "kBq/ml uncalibrated";
    }
    return "unknown";
}

}  // namespace

int frames(const FrameOptions& options) {
    if (options.replicates != 0 && options.regions.empty())
        throw UsageError("--replicates: expected --region, whose errors they give");
    image::Setup setup(options);
    const daemon::Coverage& coverage = setup.source.coverage();
    const frames::FramePlan plan = frames::plan_of(options, setup.source, setup.scanner.tick_ps);
    const image::Parts bed = image::parts_of(setup.source, setup.scanner.rotation, options.bed);
    const image::Grid grid = image::CombinedImage(setup.how.grid, bed.list).grid();
    const std::vector<frames::Region> regions = frames::regions_of(options.regions, grid);
    const nlohmann::json stated = frames::stated_keys(options.bids);
    Outputs outputs(options.force);
    outputs.make_directory(options.output);
    for (const char* file : {"frames.nii", "frames.json", "curves.csv", "curves.png"})
        outputs.claim(options.output / file);

    OutputFile out(options.output / "frames.nii");
    // What the values are may differ by frame, and the sidecar says it.
    out.text(
        nifti::header(image::volume_of(grid), "petlm frames: see frames.json", series_of(plan, coverage)));
    frames::FrameMaker maker(setup, plan, regions, bed.list, options.replicates, out);
    maker.make_all();
    out.close();
    const nlohmann::json sidecar = frames::sidecar(setup, plan, maker.reports(), stated);
    write_text(options.output / "frames.json",
               sidecar.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');
    if (!regions.empty()) {
        frames::CurveValues values{unit_of(maker.reports()), maker.means(), maker.errors(), {}};
        for (const frames::FrameReport& report : maker.reports())
            values.recorded_s.push_back(report.recorded_s);
        write_text(options.output / "curves.csv", frames::curves_csv(plan, coverage, regions, values));
        if constexpr (report::with_cairo)
            write_text(options.output / "curves.png", frames::curves_png(plan, coverage, regions, values));
    }
    outputs.commit();

    std::vector<std::string> messages;
    const auto print = [&](const auto& lines) {
        messages.insert(messages.end(), std::begin(lines), std::end(lines));
    };
    print(image::doubts_about(setup.source));
    if (!bed.sentence.empty()) messages.push_back(bed.sentence);
    print(plan.sentences);
    std::set<std::string> warnings;
    for (std::size_t i = 0; i < plan.list.size(); ++i) {
        const frames::FrameReport& report = maker.reports()[i];
        messages.push_back(frame_line(plan, coverage, i, report));
        if (report.data) warnings.insert(report.report.warning());
    }
    for (const frames::Region& region : regions) {
        if (region.inside() < 0.999)
            messages.push_back(fmt::format("Region {}: only {:.3g} % of it lie in the image.", region.name(),
                                           100 * region.inside()));
    }
    print(maker.sentences());
    print(warnings);
    if (const auto missing = frames::missing_keys(sidecar); !missing.empty()) {
        messages.push_back(fmt::format("For BIDS, frames.json lacks {}, which nobody stated (--bids).",
                                       fmt::join(missing, ", ")));
    }
    print_images({{"frames", sidecar}}, messages, options.output / "frames.json", outputs,
                 !regions.empty() && !report::with_cairo, options.as_json);
    return ok;
}

}  // namespace petacq::petlm

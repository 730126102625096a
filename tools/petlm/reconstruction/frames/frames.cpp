#include "tools/petlm/reconstruction/frames/frames.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "config/base/seconds_since.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/corrections/bed.hpp"
#include "tools/petlm/reconstruction/frames/curves.hpp"
#include "tools/petlm/reconstruction/frames/distribution.hpp"
#include "tools/petlm/reconstruction/frames/plan.hpp"
#include "tools/petlm/reconstruction/frames/regions.hpp"
#include "tools/petlm/reconstruction/frames/sidecar.hpp"
#include "tools/petlm/reconstruction/image/made_image.hpp"
#include "tools/petlm/reconstruction/image/setup.hpp"
#include "tools/petlm/reconstruction/image/volume.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/report/cairo.hpp"

namespace petacq::petlm {
namespace {

constexpr float no_value = std::numeric_limits<float>::quiet_NaN();

/// The mean distance between the starts of frames that follow each other; of phases, their mean length.
nifti::Series series_of(const frames::FramePlan& plan, const daemon::Coverage& coverage) {
    const auto count = static_cast<double>(plan.list.size());
    if (plan.gates) return {plan.list.size(), 0, plan.gates->period_s / count};
    const double start = coverage.since_reference_s(plan.list.front().span.start);
    return {plan.list.size(), start, (coverage.since_reference_s(plan.list.back().span.end) - start) / count};
}

/// A sentence about the bed; empty: it is known not to have moved.
std::string bed_sentence(const FrameOptions& options, const ExportSource& source) {
    const corrections::BedMovement movement = corrections::bed_movement(source);
    if (!movement.moved()) return movement.unknown_text();
    if (options.bed != "ignore") {
        throw BadInput(
            fmt::format("{}: {}. Frames need a bed that is still; petlm cut takes out the time at "
                        "one position, --bed ignore makes frames as if it had not moved",
                        source.target().string(), movement.text()));
    }
    return movement.text() + ". That was ignored (--bed ignore): the frames are smeared or displaced.";
}

/// The standard deviation of values.
class Spread {
  public:
    static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    void add(double value) {
        ++count_;
        const double from_mean = value - mean_;
        mean_ += from_mean / count_;
        squares_ += from_mean * (value - mean_);
    }
    [[nodiscard]] double deviation() const {
        return count_ > 1 ? std::sqrt(squares_ / (count_ - 1)) : unknown;
    }

  private:
    double count_ = 0;
    double mean_ = 0;
    double squares_ = 0;
};

/// Makes the frames, one after the other, as their records have been read, and writes them.
class FrameMaker {
  public:
    FrameMaker(image::Setup& setup, const frames::FramePlan& plan, const std::vector<frames::Region>& regions,
               std::uint32_t replicates, OutputFile& out)
        : setup_(setup),
          plan_(plan),
          regions_(regions),
          replicates_(replicates),
          out_(out),
          lines_(setup, {setup.source.coverage()}),
          counts_(plan.list.size()),
          means_(regions.size()),
          errors_(regions.size()) {}

    void make_all() {
        std::vector<daemon::Intervals> times;
        for (const frames::Frame& frame : plan_.list)
            times.push_back(*frame.coverage.intervals);
        frames::Distribution distribution(
            times,
            [&](std::size_t frame, std::span<const gpu::Coincidence> records) {
                counts_of(frame).add(records);
            },
            [&](std::size_t frame) { complete(frame); });
        share_memory(distribution.most_open());
        const auto start = std::chrono::steady_clock::now();
        setup_.source.for_each_block(
            setup_.scanner.geometry.crystal_count(),
            [&](const daemon::ListModeReader& reader) { distribution.add(reader.coincidences()); },
            "frames of");
        distribution.finish();
        all_s_ = config::seconds_since(start);
    }

    [[nodiscard]] const std::vector<frames::FrameReport>& reports() const { return reports_; }
    /// [region][frame]
    [[nodiscard]] const std::vector<std::vector<double>>& means() const { return means_; }
    /// Likewise, of counting; NaN: not known.
    [[nodiscard]] const std::vector<std::vector<double>>& errors() const { return errors_; }
    /// About grid, settings, memory and time.
    [[nodiscard]] std::vector<std::string> sentences() const {
        std::vector<std::string> out;
        if (!made_.empty())
            out = image::sentences_about_making(setup_, setup_.how.grid, made_, all_s_ - made_s_);
        if (open_ > 1) {
            out.push_back(
                fmt::format("{} frames were collected at a time, each with room for {} pairs of crystals.",
                            open_, capacity_));
        }
        return out;
    }

  private:
    /// The frames that are open at a time share the memory that an image has for its pairs.
    void share_memory(std::size_t open) {
        open_ = open;
        capacity_ = image::pair_capacity(setup_.how.max_memory) / open;
        memory_of_image_ = setup_.how.max_memory - (open - 1) * capacity_ * image::PairCounts::bytes_per_pair;
        image::QuickLookOptions least = setup_.how;
        least.max_memory = memory_of_image_;
        image::within_memory([&] { image::check_before_reading(least); });
    }
    image::ImageCounts& counts_of(std::size_t frame) {
        auto& counts = counts_[frame];
        if (!counts) {
            counts = std::make_unique<image::ImageCounts>(setup_.scanner.geometry, setup_.rule, capacity_,
                                                          setup_.pool, setup_.tof.bins);
        }
        return *counts;
    }
    void complete(std::size_t frame) {
        const frames::Frame& of_plan = plan_.list[frame];
        frames::FrameReport report;
        std::vector<float> values;
        std::vector<Spread> spreads(regions_.size());
        if (of_plan.coverage.ticks() == 0) {
            report.why_none = "the records have a gap: none could be taken in this time";
        } else {
            image::ImageCounts& counts = counts_of(frame);
            counts.finish();
            const auto start = std::chrono::steady_clock::now();
            image::MadeImage made =
                image::make_image(setup_, {of_plan.coverage}, lines_, counts,
                                  fmt::format("frame {} of {}", frame + 1, plan_.list.size()),
                                  memory_of_image_, {replicates_, [&](std::span<const float> replicate) {
                                                         for (std::size_t r = 0; r < regions_.size(); ++r)
                                                             spreads[r].add(regions_[r].mean(replicate));
                                                     }});
            made_s_ += config::seconds_since(start);
            report.prompts = counts.prompts;
            report.share_of_pairs = counts.pairs.share();
            report.report = made.report;
            report.sentences = made.sentences;
            const auto& sensitivity = made.look.sensitivity;
            report.data = std::any_of(sensitivity.begin(), sensitivity.end(), [](float s) { return s > 0; });
            if (!report.data) report.why_none = "no data of any pair of boards arrived in this time";
            values = std::move(made.look.em.image);
            made.look.em.image = {};
            made.look.sensitivity = {};
            made_.push_back(std::move(made));
        }
        counts_[frame].reset();
        if (!report.data) values.assign(setup_.how.grid.voxels(), no_value);
        out_.text({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
        // Counts of frames of different length are compared by their rate.
        const double per_s = report.data && !report.report.quantity.activity ? of_plan.coverage.seconds() : 1;
        for (std::size_t r = 0; r < regions_.size(); ++r) {
            means_[r].push_back(regions_[r].mean(values) / per_s);
            errors_[r].push_back(report.data ? spreads[r].deviation() / per_s : spreads[r].unknown);
        }
        reports_.push_back(std::move(report));
    }

    image::Setup& setup_;
    const frames::FramePlan& plan_;
    const std::vector<frames::Region>& regions_;
    std::uint32_t replicates_;
    OutputFile& out_;
    image::PartLines lines_;
    std::size_t open_ = 1;
    std::size_t capacity_ = 0;
    std::uint64_t memory_of_image_ = 0;
    std::vector<std::unique_ptr<image::ImageCounts>> counts_;  // [frame] nullptr: none yet, or done
    std::vector<image::MadeImage> made_;                       // without their values
    std::vector<frames::FrameReport> reports_;
    std::vector<std::vector<double>> means_;
    std::vector<std::vector<double>> errors_;
    double all_s_ = 0;
    double made_s_ = 0;
};

std::string frame_line(const frames::FramePlan& plan, const daemon::Coverage& coverage, std::size_t i,
                       const frames::FrameReport& report) {
    const frames::Frame& frame = plan.list[i];
    const std::string when =
        plan.gates ? fmt::format("phase {} of {}", i + 1, plan.list.size())
                   : fmt::format("{:.6g} to {:.6g} s", coverage.since_reference_s(frame.span.start),
                                 coverage.since_reference_s(frame.span.end));
    if (!report.data) return fmt::format("Frame {}: {}: no values, as {}.", i + 1, when, report.why_none);
    const double recorded = frame.coverage.seconds();
    const double asked = static_cast<double>(frame.span.ticks()) * coverage.tick_ps * 1e-12;
    const bool part = !plan.gates && recorded < asked * (1 - 1e-9);
    const std::string pairs =
        report.share_of_pairs < 1
            ? fmt::format(
                  ", of which those of 1 in {} pairs of crystals fitted into memory (--max-memory-gb)",
                  std::llround(1 / report.share_of_pairs))
            : "";
    return fmt::format("Frame {}: {}, {}{:.6g} s recorded, {} prompts{}.", i + 1, when, part ? "only " : "",
                       recorded, report.prompts, pairs);
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

void print(const std::vector<std::string>& lines) {
    for (const std::string& line : lines)
        std::cout << line << '\n';
}

}  // namespace

int frames(const FrameOptions& options) {
    if (options.replicates != 0 && options.regions.empty())
        throw UsageError("--replicates: expected --region, whose errors they give");
    image::Setup setup(options);
    const daemon::Coverage& coverage = setup.source.coverage();
    const frames::FramePlan plan = frames::plan_of(options, setup.source, setup.scanner.tick_ps);
    const std::vector<frames::Region> regions = frames::regions_of(options.regions, setup.how.grid);
    const nlohmann::json stated = frames::stated_keys(options.bids);
    const std::string bed = bed_sentence(options, setup.source);
    Outputs outputs(options.force);
    outputs.make_directory(options.output);
    for (const char* file : {"frames.nii", "frames.json", "curves.csv", "curves.png"})
        outputs.claim(options.output / file);

    OutputFile out(options.output / "frames.nii");
    // What the values are may differ by frame, and the sidecar says it.
    out.text(nifti::header(image::volume_of(setup.how.grid), "petlm frames: see frames.json",
                           series_of(plan, coverage)));
    FrameMaker maker(setup, plan, regions, options.replicates, out);
    maker.make_all();
    out.close();
    write_text(options.output / "frames.json", frames::sidecar_text(setup, plan, maker.reports(), stated));
    if (!regions.empty()) {
        const frames::CurveValues values{unit_of(maker.reports()), maker.means(), maker.errors()};
        write_text(options.output / "curves.csv", frames::curves_csv(plan, coverage, regions, values));
        if constexpr (report::with_cairo)
            write_text(options.output / "curves.png", frames::curves_png(plan, coverage, regions, values));
    }
    outputs.commit();

    if (!regions.empty() && !report::with_cairo) std::cerr << "petlm: " << report::without_cairo << '\n';
    print(image::doubts_about(setup.source));
    if (!bed.empty()) print({bed});
    print(plan.sentences);
    std::set<std::string> warnings;
    for (std::size_t i = 0; i < plan.list.size(); ++i) {
        const frames::FrameReport& report = maker.reports()[i];
        print({frame_line(plan, coverage, i, report)});
        if (report.data) warnings.insert(report.report.warning());
    }
    for (const frames::Region& region : regions) {
        if (region.inside() < 0.999)
            print({fmt::format("Region {}: only {:.3g} % of it lie in the image.", region.name(),
                               100 * region.inside())});
    }
    print(maker.sentences());
    print({warnings.begin(), warnings.end()});
    std::cout << "See " << (options.output / "frames.json").string() << '\n';
    return ok;
}

}  // namespace petacq::petlm

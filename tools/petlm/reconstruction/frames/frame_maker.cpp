#include "tools/petlm/reconstruction/frames/frame_maker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "config/base/seconds_since.hpp"
#include "tools/petlm/reconstruction/frames/distribution.hpp"
#include "tools/petlm/reconstruction/image/spurious.hpp"
#include "tools/petlm/reconstruction/image/statement.hpp"

namespace petacq::frames {
namespace {

constexpr float no_value = std::numeric_limits<float>::quiet_NaN();

/// The voxels of any region, in order.
std::vector<std::uint32_t> voxels_of(const std::vector<Region>& regions) {
    std::vector<std::uint32_t> out;
    for (const Region& region : regions) {
        for (const auto& [voxel, share] : region.shares())
            out.push_back(voxel);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

}  // namespace

FrameMaker::FrameMaker(image::Setup& setup, const FramePlan& plan, const std::vector<Region>& regions,
                       const std::vector<image::Part>& bed, std::uint32_t replicates, petlm::OutputFile& out)
    : setup_(setup),
      plan_(plan),
      regions_(regions),
      bed_(bed),
      replicates_(replicates),
      out_(out),
      grid_(image::CombinedImage(setup.how.grid, bed).grid()),
      means_(regions.size()),
      errors_(regions.size()) {
    for (const image::Part& part : bed_)
        lines_.emplace_back(setup_, part);
    share_out();
    counts_.resize(shares_.size());
    if (moved() && replicates_ != 0) in_regions_ = voxels_of(regions_);
}

void FrameMaker::share_out() {
    for (std::size_t frame = 0; frame < plan_.list.size(); ++frame) {
        const daemon::Coverage& coverage = plan_.list[frame].coverage;
        const std::size_t before = shares_.size();
        for (std::size_t position = 0; moved() && position < bed_.size(); ++position) {
            const image::Part& there = bed_[position];
            const daemon::Intervals times = coverage.intervals->intersect(*there.coverage.intervals);
            if (times.empty()) continue;
            image::Part part{daemon::part_of(coverage, times), there.bed_mm};
            part.decays = coverage.seconds() / part.coverage.seconds();
            shares_.push_back({frame, position, std::move(part)});
        }
        if (!moved()) shares_.push_back({frame, 0, {coverage}});
        if (shares_.size() == before) {
            // Nothing was taken while the bed was still.
            shares_.push_back({frame, 0, {daemon::part_of(coverage, daemon::Intervals())}});
        }
    }
}

void FrameMaker::make_all() {
    std::vector<daemon::Intervals> times;
    for (const FrameShare& share : shares_)
        times.push_back(*share.part.coverage.intervals);
    Distribution distribution(
        times,
        [&](std::size_t share, std::span<const gpu::Coincidence> records) { counts_of(share).add(records); },
        [&](std::size_t share) { complete(share); });
    share_memory(distribution.most_open());
    const auto start = std::chrono::steady_clock::now();
    setup_.source.for_each_block(
        setup_.scanner.geometry.crystal_count(),
        [&](const daemon::ListModeReader& reader) { distribution.add(reader.coincidences()); }, "frames of");
    distribution.finish();
    all_s_ = config::seconds_since(start);
}

/// What is open at a time shares the memory that an image has for its pairs.
void FrameMaker::share_memory(std::size_t open) {
    const std::uint64_t combined =
        moved() ? image::CombinedImage(setup_.how.grid, bed_).bytes() : std::uint64_t{0};
    image::QuickLookOptions least = setup_.how;
    least.max_memory -= std::min(least.max_memory, combined);
    open_ = open;
    capacity_ = image::pair_capacity(least.max_memory) / open;
    least.max_memory -= (open - 1) * capacity_ * image::PairCounts::bytes_per_pair;
    memory_of_image_ = least.max_memory;
    image::within_memory([&] { image::check_before_reading(least); });
}

image::ImageCounts& FrameMaker::counts_of(std::size_t share) {
    auto& counts = counts_[share];
    if (!counts) {
        counts = std::make_unique<image::ImageCounts>(setup_.scanner.geometry, setup_.angles, setup_.rule,
                                                      capacity_, setup_.pool, setup_.tof.bins);
    }
    return *counts;
}

void FrameMaker::complete(std::size_t share) {
    if (!now_.spread) now_.spread.emplace(regions_.size());
    if (shares_[share].part.coverage.ticks() > 0) make_share(share);
    counts_[share].reset();
    if (share + 1 == shares_.size() || shares_[share + 1].frame != shares_[share].frame)
        finish_frame(shares_[share].frame);
}

void FrameMaker::make_share(std::size_t share) {
    const FrameShare& of_plan = shares_[share];
    image::ImageCounts& counts = counts_of(share);
    counts.finish();
    const std::string what = fmt::format("frame {} of {}", of_plan.frame + 1, plan_.list.size());
    std::size_t number = 0;
    const auto use = [&](const image::QuickLook& replicate, double scale) {
        if (!moved()) {
            now_.spread->add(means_of(replicate.em.image));
            return;
        }
        image::CombinedImage alone(setup_.how.grid, bed_);
        alone.add(of_plan.part, replicate.em.image, {}, replicate.sensitivity, scale);
        now_.replicates.resize(replicates_, std::vector<double>(in_regions_.size()));
        std::vector<double>& sums = now_.replicates[number++];
        for (std::size_t i = 0; i < in_regions_.size(); ++i)
            sums[i] += alone.weighted(in_regions_[i]);
    };
    const auto start = std::chrono::steady_clock::now();
    const image::PartLines& lines = lines_[of_plan.position];
    image::SpuriousOfRun spurious =
        image::spurious_of(setup_, of_plan.part, lines, counts, what, memory_of_image_);
    counts.spurious = spurious.pairs;
    image::MadeImage made = image::make_image(setup_, of_plan.part, lines, counts, what, memory_of_image_,
                                              {replicates_, use}, std::move(spurious.sensitivity));
    made_s_ += config::seconds_since(start);
    now_.report.prompts += counts.prompts;
    now_.report.share_of_pairs = std::min(now_.report.share_of_pairs, counts.pairs.share());
    take(of_plan.part, std::move(made));
}

/// The image of one position.
void FrameMaker::take(const image::Part& part, image::MadeImage made) {
    now_.taken = true;
    FrameReport& report = now_.report;
    const std::vector<float>& sensitivity = made.look.sensitivity;
    if (std::any_of(sensitivity.begin(), sensitivity.end(), [](float s) { return s > 0; })) {
        report.data = true;
        report.times = report.times.unite(*part.coverage.intervals);
        report.positions.push_back({part.bed_mm, made.report});
        for (const std::string& sentence : made.sentences)
            report.sentences.push_back(moved() ? image::at_position(part, sentence) : sentence);
        if (moved()) {
            if (!now_.bed) now_.bed.emplace(setup_.how.grid, bed_);
            now_.bed->add(part, made.look.em.image, {}, sensitivity, made.scale);
        } else {
            now_.values = std::move(made.look.em.image);
        }
    }
    made.look.em.image = {};
    made.look.sensitivity = {};
    made_.push_back(std::move(made));
}

/// The images of all positions become one. What none of them saw has no value.
void FrameMaker::combine() {
    now_.values = now_.bed->finish();
    for (std::uint32_t z = 0; z < grid().n[2]; ++z) {
        if (now_.bed->sees_plane(z)) continue;
        const auto plane = static_cast<std::ptrdiff_t>(std::size_t{grid().n[0]} * grid().n[1]);
        std::fill_n(now_.values.begin() + z * plane, plane, no_value);
    }
    std::vector<float> replicate = now_.values;
    for (const std::vector<double>& sums : now_.replicates) {
        for (std::size_t i = 0; i < in_regions_.size(); ++i) {
            const double weight = now_.bed->weight(in_regions_[i]);
            if (weight > 0) replicate[in_regions_[i]] = static_cast<float>(sums[i] / weight);
        }
        now_.spread->add(means_of(replicate));
    }
}

void FrameMaker::finish_frame(std::size_t frame) {
    const daemon::Coverage& coverage = plan_.list[frame].coverage;
    FrameReport& report = now_.report;
    if (report.data) {
        if (now_.bed) combine();
        const daemon::Coverage used = daemon::part_of(coverage, report.times);
        report.report = image::report_of_all(report.positions, used);
        report.recorded_s = used.seconds();
        if (!moved()) report.positions.clear();
    } else {
        report.recorded_s = coverage.seconds();
        report.why_none = coverage.ticks() == 0 ? "the records have a gap: none could be taken in this time"
                          : now_.taken          ? "no data of any pair of boards arrived in this time"
                                                : "the bed was on its way between two positions";
        now_.values.assign(grid().voxels(), no_value);
    }
    out_.text({reinterpret_cast<const char*>(now_.values.data()), now_.values.size() * sizeof(float)});
    // Counts of frames of different length are compared by their rate.
    const double per_s = report.data && !report.report.quantity.activity ? coverage.seconds() : 1;
    const std::vector<float> deviations = now_.spread->deviation();
    for (std::size_t r = 0; r < regions_.size(); ++r) {
        means_[r].push_back(regions_[r].mean(now_.values) / per_s);
        // Without counts there is no spread, which does not say that there is no error.
        const bool known = deviations[r] > 0;
        errors_[r].push_back(known ? deviations[r] / per_s : std::numeric_limits<double>::quiet_NaN());
    }
    reports_.push_back(std::move(report));
    now_ = {};
}

std::vector<float> FrameMaker::means_of(std::span<const float> image) const {
    std::vector<float> out;
    for (const Region& region : regions_)
        out.push_back(static_cast<float>(region.mean(image)));
    return out;
}

std::vector<std::string> FrameMaker::sentences() const {
    std::vector<std::string> out;
    if (!made_.empty()) out = image::sentences_about_making(setup_, grid_, made_, all_s_ - made_s_);
    if (open_ > 1) {
        out.push_back(fmt::format("{} {} were collected at a time, each with room for {} pairs of crystals.",
                                  open_, moved() ? "parts of frames" : "frames", capacity_));
    }
    return out;
}

}  // namespace petacq::frames

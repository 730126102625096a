#include "tools/petlm/records/scanner_angle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/tags.hpp"

namespace petacq::petlm {

ScannerAngle::ScannerAngle(const std::filesystem::path& target, const daemon::Coverage& coverage,
                           const config::Rotation& rotation) {
    daemon::Intervals known;
    for (const TagsOverTime& run : tags_of(target, coverage, rotation.tag_channel, TagUse::positions)) {
        known = known.unite(run.times);
        config::AngleOverTime angle(rotation);
        for (const gpu::Tag& tag : run.tags)
            angle.add(tag.time, static_cast<std::int32_t>(tag.value));
        runs_.push_back({run.times.span().start, std::move(angle)});
    }
    const daemon::Intervals unknown = coverage.intervals.value_or(daemon::Intervals()).without(known);
    if (unknown.empty()) return;
    throw BadInput(fmt::format(
        "{}: no tag of position on channel {} from {:.6g} to {:.6g} s: the angle of the scanner is unknown",
        target.string(), rotation.tag_channel, coverage.since_reference_s(unknown.span().start),
        coverage.since_reference_s(unknown.span().end)));
}

const ScannerAngle::OfRun& ScannerAngle::run_at(std::uint64_t time) const {
    const auto after =
        std::partition_point(runs_.begin(), runs_.end(), [&](const OfRun& run) { return run.start <= time; });
    return after == runs_.begin() ? runs_.front() : *(after - 1);
}

void ScannerAngle::for_each_range(const daemon::Intervals& times, double most_radians,
                                  const std::function<void(gpu::TickRange)>& use) const {
    for (const gpu::TickRange& range : times.ranges()) {
        for (std::uint64_t start = range.start; start < range.end;) {
            const config::AngleOverTime& angle = run_at(start).angle;
            const std::uint64_t end = std::min(range.end, angle.next_tag(start));
            const double turned = std::abs(angle.at(end) - angle.at(start));
            const auto parts = static_cast<std::uint64_t>(std::ceil(turned / most_radians));
            const std::uint64_t step =
                std::max<std::uint64_t>((end - start) / std::max<std::uint64_t>(parts, 1), 1);
            for (; start < end; start += std::min(step, end - start))
                use({start, std::min(start + step, end)});
        }
    }
}

}  // namespace petacq::petlm

#include "tools/petlm/reconstruction/corrections/bed.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "gpu/base/records.hpp"
#include "tools/petlm/records/origin.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/tags.hpp"

namespace petacq::corrections {
namespace {

/// From a time on, the bed is somewhere else.
struct BedStep {
    std::uint64_t time;
    double mm;
};
/// [source << 8 | channel]
using Steps = std::map<std::uint32_t, std::vector<BedStep>>;

Steps steps_in(petlm::RecordSource& tags, const std::optional<config::Rotation>& rotation) {
    Steps steps;
    while (tags.next()) {
        for (const gpu::Tag& tag : tags.reader().tags()) {
            if (tag.kind != static_cast<std::uint8_t>(gpu::TagKind::position)) continue;
            if (rotation && tag.channel == rotation->tag_channel) continue;
            const double mm = static_cast<std::int32_t>(tag.value) * 1e-3;
            std::vector<BedStep>& of_channel = steps[std::uint32_t{tag.source} << 8U | tag.channel];
            if (of_channel.empty() || std::abs(of_channel.back().mm - mm) > BedMovement::min_step_mm)
                of_channel.push_back({tag.time, mm});
        }
    }
    return steps;
}

/// Where a bed was, and when.
struct Stay {
    double mm;
    daemon::Intervals times;  ///< covered
    bool still;
};

std::vector<Stay> stays_of(const std::vector<BedStep>& steps, const daemon::Intervals& covered,
                           double tick_ps) {
    std::vector<Stay> out;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const gpu::TickRange there{i == 0 ? 0 : steps[i].time,
                                   i + 1 < steps.size() ? steps[i + 1].time : UINT64_MAX};
        const daemon::Intervals times = covered.intersect(there);
        if (times.empty()) continue;
        out.push_back({steps[i].mm, times,
                       static_cast<double>(there.ticks()) * tick_ps * 1e-12 >= BedMovement::still_s});
    }
    return out;
}

void look_at(const std::vector<Stay>& stays, unsigned channel, double covered_ticks, BedMovement& out) {
    const auto [low, high] = std::minmax_element(stays.begin(), stays.end(),
                                                 [](const Stay& a, const Stay& b) { return a.mm < b.mm; });
    const double travel = stays.empty() ? 0 : high->mm - low->mm;
    if (travel <= BedMovement::min_step_mm) return;
    ++out.moving_channels;
    if (travel <= out.travel_mm) return;
    out.travel_mm = travel;
    out.channel = channel;
    out.positions.clear();
    double still = 0;
    for (const Stay& stay : stays) {
        if (!stay.still) continue;
        still += static_cast<double>(stay.times.ticks());
        const auto same = std::find_if(out.positions.begin(), out.positions.end(), [&](const BedPosition& p) {
            return std::abs(p.mm - stay.mm) <= BedMovement::min_step_mm;
        });
        if (same == out.positions.end()) {
            out.positions.push_back({stay.mm, stay.times});
        } else {
            same->times = same->times.unite(stay.times);
        }
    }
    out.still_share = still / covered_ticks;
}

}  // namespace

std::string BedMovement::text() const {
    std::string text =
        fmt::format("The bed moved by {:.4g} mm, as the position tags of channel {} say", travel_mm, channel);
    if (moving_channels > 1)
        return text + fmt::format(", and so did that of {} other channels", moving_channels - 1);
    return text + fmt::format(": it stood still at {} positions for {:.3g} % of the time", positions.size(),
                              100 * still_share);
}

BedMovement bed_movement(const petlm::ExportSource& source, const std::optional<config::Rotation>& rotation) {
    const daemon::Coverage& coverage = source.coverage();
    const daemon::Intervals covered =
        coverage.intervals.value_or(daemon::Intervals(gpu::TickRange{0, UINT64_MAX}));
    BedMovement out;
    std::map<std::uint32_t, std::vector<Stay>> stays;
    for (const petlm::RunPlace& place : petlm::places_of_runs(source.target(), coverage)) {
        if (place.directory.empty()) {
            out.unknown.push_back(place.not_found());
            continue;
        }
        if (!petlm::has_tags(place.directory)) {
            if (petlm::wrote_tags(place.directory))
                out.unknown.push_back(place.directory.string() + " has lost the tags of its run");
            continue;
        }
        petlm::RecordSource tags(place.directory, daemon::RecordKind::tags);
        daemon::Intervals times = covered.intersect(place.times);
        // A file of an earlier version does not say which of its runs has which times.
        if (coverage.origin.runs.size() > 1)
            times = times.intersect(tags.coverage().intervals.value_or(covered));
        for (const auto& [channel, steps] : steps_in(tags, rotation))
            for (Stay& stay : stays_of(steps, times, coverage.tick_ps))
                stays[channel].push_back(std::move(stay));
    }
    for (const auto& [channel, of_channel] : stays)
        look_at(of_channel, channel & 0xFFU, static_cast<double>(covered.ticks()), out);
    return out;
}

std::string BedMovement::unknown_text() const {
    return unknown.empty() ? ""
                           : fmt::format("Whether the bed moved is not known: {}.", fmt::join(unknown, "; "));
}

}  // namespace petacq::corrections

#include "tools/petlm/export/petsird/other_blocks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <string_view>
#include <utility>

#include "tools/petlm/base/status.hpp"

namespace petacq::petsird {
namespace {

/// Their places are their numbers in the format.
constexpr std::array<std::string_view, 9> signal_types = {
    "ECG_TRACE",     "ECG_TRIGGER",         "RESP_TRACE",
    "RESP_TRIGGER",  "OTHER_MOTION_SIGNAL", "OTHER_MOTION_TRIGGER",
    "EXTERNAL_SYNC", "MR_PULSE_START",      "OTHER"};
constexpr std::uint32_t external_sync = 6;
constexpr std::uint32_t other = 8;
/// Numbers above are rounded: the format holds values of signals as f32.
constexpr std::uint32_t most_exact = 1U << 24U;
/// The scanner stands still in PETSIRD until it has turned by this.
constexpr double gantry_step = 0.5 * std::numbers::pi / 180;

std::pair<std::uint32_t, std::uint32_t> parse_signal(const std::string& text) {
    const std::size_t equals = text.find('=');
    const std::string channel = text.substr(0, equals);
    const std::string_view name =
        equals == std::string::npos ? "" : std::string_view(text).substr(equals + 1);
    const auto type = std::find(signal_types.begin(), signal_types.end(), name);
    const bool good = !channel.empty() && channel.size() <= 2 &&
                      channel.find_first_not_of("0123456789") == std::string::npos &&
                      std::stoul(channel) <= 15;
    if (!good || type == signal_types.end()) {
        throw petlm::UsageError(
            fmt::format("--signal: expected a channel from 0 to 15, = and one of {}, found '{}'",
                        fmt::join(signal_types, ", "), text));
    }
    return {static_cast<std::uint32_t>(std::stoul(channel)),
            static_cast<std::uint32_t>(type - signal_types.begin())};
}

double mm_of(const gpu::Tag& tag) {
    return static_cast<double>(static_cast<std::int32_t>(tag.value)) * 1e-3;
}

bool is(const gpu::Tag& tag, gpu::TagKind kind) {
    return tag.kind == static_cast<std::uint8_t>(kind);
}

std::string name_of(std::uint8_t kind) {
    switch (static_cast<gpu::TagKind>(kind)) {
        case gpu::TagKind::trigger:
            return "trigger";
        case gpu::TagKind::gate:
            return "gate, 1 open";
        case gpu::TagKind::position:
            return "position, mm";
        case gpu::TagKind::clock:
            return "clock";
        default:
            return fmt::format("tags of kind {}", kind);
    }
}

using OfKey = std::map<std::uint32_t, std::vector<gpu::Tag>>;

/// By kind and channel, but for those of dead time.
OfKey by_key(const std::vector<gpu::Tag>& tags) {
    OfKey found;
    for (const gpu::Tag& tag : tags)
        if (!is(tag, gpu::TagKind::dead_time))
            found[std::uint32_t{tag.kind} << 8U | tag.channel].push_back(tag);
    return found;
}

void add_signals(const std::vector<gpu::Tag>& tags, const PetsirdOptions& options, const TimeBlocks& time,
                 TagBlocks& out) {
    std::map<std::uint32_t, std::uint32_t> named;
    for (const std::string& signal : options.signals) {
        const auto [channel, type] = parse_signal(signal);
        named[channel] = type;
    }
    bool rounded = false;
    for (const auto& [key, of_key] : by_key(tags)) {
        const gpu::Tag& first = of_key.front();
        const std::uint32_t usual = is(first, gpu::TagKind::clock) ? external_sync : other;
        const auto given = named.find(first.channel);
        out.signals.push_back({key, given == named.end() ? usual : given->second,
                               fmt::format("channel {}: {}", first.channel, name_of(first.kind))});
        for (std::size_t k = 0; k < of_key.size(); ++k) {
            const gpu::Tag& tag = of_key[k];
            const std::uint64_t begin = time.ms_of(tag.time);
            // A trigger ends when it begins; any other value holds up to the next one.
            std::uint64_t end = begin;
            if (!is(tag, gpu::TagKind::trigger))
                end = k + 1 < of_key.size() ? time.ms_of(of_key[k + 1].time) : std::max(time.end_ms(), begin);
            const double value =
                is(tag, gpu::TagKind::position) ? mm_of(tag) : static_cast<double>(tag.value);
            rounded = rounded || static_cast<float>(value) > static_cast<float>(most_exact);
            Coded block = block_head(BlockKind::signal, {begin, end});
            block.number(key).number(1).f32(value);
            out.blocks.push_back({begin, std::move(block.bytes)});
        }
    }
    if (rounded)
        out.not_held.push_back(fmt::format("values of signals above {}: rounded to 24 bits", most_exact));
}

void put(Coded& block, const Matrix& matrix) {
    for (const double value : matrix)
        block.f32(value);
}

struct At {
    std::uint64_t begin_ms;
    double value;
};

/// The channel whose tags say where the bed is.
std::optional<std::uint32_t> bed_channel(const std::vector<gpu::Tag>& tags,
                                         const std::optional<config::Rotation>& rotation,
                                         const PetsirdOptions& options, TagBlocks& out) {
    std::set<std::uint32_t> channels;
    for (const gpu::Tag& tag : tags)
        if (is(tag, gpu::TagKind::position) && !(rotation && tag.channel == rotation->tag_channel))
            channels.insert(tag.channel);
    if (options.bed_channel) {
        if (channels.contains(*options.bed_channel)) return options.bed_channel;
        throw petlm::UsageError(
            fmt::format("--bed-channel {}: the run has no tags with a position in it", *options.bed_channel));
    }
    if (channels.size() == 1) return *channels.begin();
    if (!channels.empty()) {
        out.not_held.push_back(
            fmt::format("positions of the bed: channels {} have positions; name one with --bed-channel",
                        fmt::join(channels, ", ")));
    }
    return std::nullopt;
}

/// The position said at the start, until tags say another.
void add_bed(const std::vector<gpu::Tag>& tags, std::optional<double> said_mm,
             const std::optional<config::Rotation>& rotation, const PetsirdOptions& options,
             const TimeBlocks& time, TagBlocks& out) {
    const auto channel = bed_channel(tags, rotation, options, out);
    std::vector<At> positions;
    if (said_mm) positions.push_back({0, *said_mm});
    for (const gpu::Tag& tag : tags)
        if (channel && is(tag, gpu::TagKind::position) && tag.channel == *channel)
            positions.push_back({time.ms_of(tag.time), mm_of(tag)});
    for (std::size_t k = 0; k < positions.size(); ++k) {
        const std::uint64_t end = k + 1 < positions.size() ? positions[k + 1].begin_ms : time.end_ms();
        Coded block = block_head(BlockKind::bed, {positions[k].begin_ms, end});
        put(block, turned_about_z(0, positions[k].value));
        out.blocks.push_back({positions[k].begin_ms, std::move(block.bytes)});
    }
}

/// From each to the next the short way around.
std::vector<At> angles_of(const std::vector<gpu::Tag>& tags, const config::Rotation& rotation,
                          const TimeBlocks& time) {
    std::vector<At> angles;
    double turned = 0;
    double before = 0;
    for (const gpu::Tag& tag : tags) {
        if (!is(tag, gpu::TagKind::position) || tag.channel != rotation.tag_channel) continue;
        const double angle = rotation.angle(static_cast<std::int32_t>(tag.value));
        if (!angles.empty()) {
            const double step = angle - before;
            if (std::abs(step) > std::numbers::pi) turned -= std::copysign(2 * std::numbers::pi, step);
        }
        before = angle;
        angles.push_back({time.ms_of(tag.time), angle + turned});
    }
    return angles;
}

/// Of several tags within a millisecond the last one counts from then on.
double angle_at(const std::vector<At>& angles, double ms) {
    const auto after = std::upper_bound(angles.begin(), angles.end(), ms, [](double at, const At& a) {
        return at < static_cast<double>(a.begin_ms);
    });
    if (after == angles.begin()) return angles.front().value;
    if (after == angles.end()) return angles.back().value;
    const At& from = *(after - 1);
    const double slope = (after->value - from.value) / static_cast<double>(after->begin_ms - from.begin_ms);
    return slope * (ms - static_cast<double>(from.begin_ms)) + from.value;
}

/// The format has angles that stand still: one for each gantry_step by which the scanner turns.
void add_gantry(const std::vector<gpu::Tag>& tags, const config::Rotation& rotation, Version version,
                const TimeBlocks& time, std::size_t types, TagBlocks& out) {
    if (time.ranges().empty()) return;
    const std::vector<At> angles = angles_of(tags, rotation, time);
    if (angles.empty()) {
        throw petlm::BadInput(fmt::format(
            "no tag of position on channel {}: the angle of the scanner is unknown", rotation.tag_channel));
    }
    const std::uint64_t last = time.end_ms() == 0 ? 0 : time.end_ms() - 1;
    std::set<std::uint64_t> begins = {0, std::min(angles.back().begin_ms, last)};
    for (std::size_t k = 0; k + 1 < angles.size(); ++k) {
        const std::uint64_t begin = angles[k].begin_ms;
        const std::uint64_t length = angles[k + 1].begin_ms - begin;
        const double wanted = std::ceil(std::abs(angles[k + 1].value - angles[k].value) / gantry_step);
        const double steps = std::clamp(wanted, 1.0, std::max(static_cast<double>(length), 1.0));
        for (double step = 0; step < steps; ++step) {
            const double at = static_cast<double>(begin) + step * (static_cast<double>(length) / steps);
            begins.insert(std::min(static_cast<std::uint64_t>(at), last));
        }
    }
    for (auto at = begins.begin(); at != begins.end(); ++at) {
        const std::uint64_t end = std::next(at) == begins.end() ? time.end_ms() : *std::next(at);
        const Matrix matrix = turned_about_z(angle_at(angles, static_cast<double>(*at + end) / 2));
        Coded block = block_head(BlockKind::gantry, {*at, end});
        if (version == Version::v0_9_1) {
            put(block, matrix);
        } else {
            block.number(types);
            for (std::size_t type = 0; type < types; ++type)
                put(block, matrix);
        }
        out.blocks.push_back({*at, std::move(block.bytes)});
    }
}

}  // namespace

Coded block_head(BlockKind kind, BlockTime time) {
    Coded head;
    head.number(1).number(static_cast<std::uint64_t>(kind)).number(time.begin_ms).number(time.end_ms);
    return head;
}

void check_signals(const PetsirdOptions& options) {
    for (const std::string& signal : options.signals)
        parse_signal(signal);
}

TagBlocks tag_blocks(const std::optional<std::vector<gpu::Tag>>& tags, std::optional<double> bed_mm,
                     const std::optional<config::Rotation>& rotation, const PetsirdOptions& options,
                     const TimeBlocks& time, std::size_t types) {
    static const std::vector<gpu::Tag> none;
    const std::vector<gpu::Tag>& found = tags ? *tags : none;
    if (rotation && options.only_events) {
        throw petlm::UsageError(
            "--only-events: the scanner turns, and its angles are not in the blocks of events");
    }
    TagBlocks out;
    if (!options.only_events) add_bed(found, bed_mm, rotation, options, time, out);
    if (rotation) add_gantry(found, *rotation, options.version, time, types, out);
    if (!options.only_events) add_signals(found, options, time, out);
    std::stable_sort(out.blocks.begin(), out.blocks.end(),
                     [](const OtherBlock& a, const OtherBlock& b) { return a.begin_ms < b.begin_ms; });
    return out;
}

}  // namespace petacq::petsird

#include "tools/petlm/records/tags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "daemon/run/directory.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/origin.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

bool is(const gpu::Tag& tag, gpu::TagKind kind) {
    return tag.kind == static_cast<std::uint8_t>(kind);
}

/// The starts of cycles.
std::vector<gpu::Tag> starts_in(std::span<const gpu::Tag> tags) {
    std::vector<gpu::Tag> starts;
    const auto take = [&](auto wanted) {
        std::copy_if(tags.begin(), tags.end(), std::back_inserter(starts), wanted);
    };
    take([](const gpu::Tag& t) { return is(t, gpu::TagKind::trigger); });
    if (!starts.empty()) return starts;
    take([](const gpu::Tag& t) { return is(t, gpu::TagKind::gate) && t.value != 0; });
    return starts;
}

/// Whether no trigger between the two is missing, as far as their running numbers tell.
bool follow(const gpu::Tag& a, const gpu::Tag& b) {
    if (!is(a, gpu::TagKind::trigger) || a.value == 0 || b.value == 0) return true;
    return b.value == a.value + 1;
}

/// The time at which bin `bin` of a cycle begins, from the begin of the cycle: the first that bin_of() puts
/// in it.
std::uint64_t begin_of_bin(std::uint64_t bin, std::uint64_t length, std::uint64_t bins) {
    return length / bins * bin + (length % bins * bin + bins - 1) / bins;
}

}  // namespace

bool has_tags(const std::filesystem::path& run) {
    const std::string name = daemon::name_of(daemon::RecordKind::tags);
    return std::filesystem::exists(run / (name + ".plm")) ||
           std::filesystem::exists(run / (name + "-0001.plm"));
}

bool wrote_tags(const std::filesystem::path& run) {
    std::string ignored;
    const nlohmann::json document = run_json(run, ignored);
    static const nlohmann::json::json_pointer written("/ledger/tags/written");
    return document.contains(written) && document[written].is_number() && document[written] > 0;
}

namespace {

std::vector<ChannelTags> tags_by_channel(const std::filesystem::path& run, TagUse use) {
    if (!has_tags(run)) return {};
    std::map<unsigned, std::vector<gpu::Tag>> by_channel;
    RecordSource source(run, daemon::RecordKind::tags);
    while (source.next()) {
        for (const gpu::Tag& tag : source.reader().tags()) {
            const bool position = is(tag, gpu::TagKind::position);
            const bool of_cycle = is(tag, gpu::TagKind::trigger) || is(tag, gpu::TagKind::gate);
            if (use == TagUse::positions ? position : of_cycle) by_channel[tag.channel].push_back(tag);
        }
    }
    std::vector<ChannelTags> out;
    out.reserve(by_channel.size());
    for (auto& [channel, tags] : by_channel)
        out.push_back({channel, std::move(tags)});
    return out;
}

}  // namespace

std::vector<ChannelTags> tags_by_channel(const std::filesystem::path& run) {
    return tags_by_channel(run, TagUse::cycles);
}

std::vector<TagsOverTime> tags_of(const std::filesystem::path& target, const daemon::Coverage& coverage,
                                  unsigned channel, TagUse use) {
    std::vector<TagsOverTime> all;
    std::string lost;
    std::vector<RunPlace> places = places_of_runs(target, coverage);
    for (const RunPlace& place : places)
        if (place.directory.empty()) lost += "; " + place.not_found();
    // Those of files without a run.json lie beside them.
    const std::filesystem::path beside = run_directories(target, {}).front();
    if (!lost.empty() && (places.size() > 1 || std::filesystem::exists(beside / daemon::run_file)))
        throw BadInput(fmt::format("{}: its tags are not known{}", target.string(), lost));
    if (!lost.empty() || places.empty()) places = {{"", beside, {}, gpu::TickRange{0, UINT64_MAX}}};
    for (const RunPlace& place : places) {
        for (ChannelTags& found : tags_by_channel(place.directory, use)) {
            if (found.channel != channel) continue;
            const auto times = RecordSource(place.directory, daemon::RecordKind::tags).coverage().intervals;
            all.push_back({std::move(found.tags),
                           times.value_or(gpu::TickRange{0, UINT64_MAX}).intersect(place.times)});
        }
    }
    if (all.empty() && use == TagUse::positions) {
        throw BadInput(
            fmt::format("{}: no tag of position on channel {}: the angle of the scanner is unknown{}",
                        places.front().directory.string(), channel, lost));
    }
    if (all.empty()) {
        throw BadInput(fmt::format("{}: no triggers and no gates of channel {}{}",
                                   places.front().directory.string(), channel, lost));
    }
    std::sort(all.begin(), all.end(), [](const TagsOverTime& a, const TagsOverTime& b) {
        return a.times.span().start < b.times.span().start;
    });
    std::vector<TagsOverTime> apart;
    for (TagsOverTime& next : all) {
        if (apart.empty() || apart.back().times.intersect(next.times).empty()) {
            apart.push_back(std::move(next));
            continue;
        }
        std::vector<gpu::Tag>& tags = apart.back().tags;
        tags.insert(tags.end(), next.tags.begin(), next.tags.end());
        std::sort(tags.begin(), tags.end(),
                  [](const gpu::Tag& a, const gpu::Tag& b) { return !daemon::in_order(b, a); });
        apart.back().times = apart.back().times.unite(next.times);
    }
    return apart;
}

daemon::Intervals open_times(std::span<const TagsOverTime> runs) {
    daemon::Intervals open;
    bool has_gate = false;
    for (const auto& [tags, times] : runs) {
        std::vector<gpu::TickRange> ranges;
        std::optional<bool> state;
        std::uint64_t since = 0;
        for (const gpu::Tag& tag : tags) {
            if (!is(tag, gpu::TagKind::gate)) continue;
            const bool opens = tag.value != 0;
            const bool was_open = state.value_or(!opens);
            if (was_open && !opens) ranges.push_back({since, tag.time});
            if (!was_open && opens) since = tag.time;
            state = opens;
        }
        if (state && *state) ranges.push_back({since, UINT64_MAX});
        has_gate = has_gate || state;
        open = open.unite(times.intersect(daemon::Intervals(std::move(ranges))));
    }
    if (!has_gate) throw BadInput("the channel has triggers, but no gate");
    return open;
}

Cycles::Cycles(std::span<const gpu::Tag> tags, const CycleLimits& limits) {
    add(tags, limits);
    measure();
}

Cycles::Cycles(std::span<const TagsOverTime> runs, const CycleLimits& limits) {
    for (const TagsOverTime& run : runs)
        add(run.tags, limits);
    measure();
}

void Cycles::add(std::span<const gpu::Tag> tags, const CycleLimits& limits) {
    const std::vector<gpu::Tag> starts = starts_in(tags);
    for (std::size_t i = 1; i < starts.size(); ++i) {
        const gpu::TickRange cycle{starts[i - 1].time, starts[i].time};
        if (!follow(starts[i - 1], starts[i]) ||
            cycle.ticks() < std::max<std::uint64_t>(limits.shortest, 1) || cycle.ticks() > limits.longest) {
            ++rejected_;
        } else {
            accepted_.push_back(cycle);
        }
    }
}

void Cycles::measure() {
    if (accepted_.empty()) return;
    const auto count = static_cast<double>(accepted_.size());
    double sum = 0;
    for (const gpu::TickRange& cycle : accepted_)
        sum += static_cast<double>(cycle.ticks());
    mean_ = sum / count;
    double squares = 0;
    for (const gpu::TickRange& cycle : accepted_) {
        const double away = static_cast<double>(cycle.ticks()) - mean_;
        squares += away * away;
    }
    spread_ = count > 1 ? std::sqrt(squares / (count - 1)) : 0;
}

std::optional<std::uint32_t> Cycles::bin_of(std::uint64_t time, std::uint32_t bins) const {
    const auto next = std::partition_point(accepted_.begin(), accepted_.end(),
                                           [&](const gpu::TickRange& cycle) { return cycle.end <= time; });
    if (next == accepted_.end() || time < next->start) return {};
    const std::uint64_t length = next->ticks();
    const std::uint64_t since = time - next->start;
    if (since < UINT64_MAX / bins) return static_cast<std::uint32_t>(since * bins / length);
    // A cycle of weeks: the same without overflow.
    std::uint32_t bin = 0;
    while (bin + 1 < bins && begin_of_bin(bin + 1, length, bins) <= since)
        ++bin;
    return bin;
}

daemon::Intervals Cycles::times_of(std::uint32_t bin, std::uint32_t bins) const {
    std::vector<gpu::TickRange> times;
    for (const gpu::TickRange& cycle : accepted_) {
        const std::uint64_t length = cycle.ticks();
        times.push_back({cycle.start + begin_of_bin(bin, length, bins),
                         cycle.start + begin_of_bin(bin + 1, length, bins)});
    }
    return daemon::Intervals(std::move(times));
}

std::vector<std::uint64_t> Cycles::live_ticks(std::uint32_t bins) const {
    std::vector<std::uint64_t> live;
    for (std::uint32_t bin = 0; bin < bins; ++bin)
        live.push_back(times_of(bin, bins).ticks());
    return live;
}

}  // namespace petacq::petlm

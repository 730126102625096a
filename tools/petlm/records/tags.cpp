#include "tools/petlm/records/tags.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/run.hpp"
#include "tools/petlm/records/status.hpp"

namespace petacq::petlm {
namespace {

std::filesystem::path run_of(const std::filesystem::path& target) {
    if (std::filesystem::is_directory(target)) return target;
    return std::filesystem::absolute(target).parent_path();
}

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

std::uint64_t length_of(std::span<const Interval> intervals) {
    std::uint64_t sum = 0;
    for (const Interval& i : intervals)
        sum += i.to - i.from;
    return sum;
}

std::vector<ChannelTags> tags_by_channel(const std::filesystem::path& target) {
    const std::filesystem::path run = run_of(target);
    const std::string name = daemon::name_of(daemon::RecordKind::tags);
    const bool has_tags =
        std::filesystem::exists(run / (name + ".plm")) || std::filesystem::exists(run / (name + "-0001.plm"));
    if (!has_tags) return {};
    std::map<unsigned, std::vector<gpu::Tag>> by_channel;
    RecordSource source(run, daemon::RecordKind::tags);
    while (source.next()) {
        for (const gpu::Tag& tag : source.reader().tags()) {
            if (is(tag, gpu::TagKind::trigger) || is(tag, gpu::TagKind::gate))
                by_channel[tag.channel].push_back(tag);
        }
    }
    std::vector<ChannelTags> out;
    for (auto& [channel, tags] : by_channel)
        out.push_back({channel, std::move(tags)});
    return out;
}

std::vector<gpu::Tag> tags_of(const std::filesystem::path& target, unsigned channel) {
    for (ChannelTags& found : tags_by_channel(target)) {
        if (found.channel == channel) return std::move(found.tags);
    }
    throw BadInput(run_of(target).string() + ": no triggers and no gates of channel " +
                   std::to_string(channel));
}

Interval run_interval(const std::filesystem::path& target) {
    std::string ignored;
    const nlohmann::json run = run_json(run_of(target), ignored);
    Interval interval;
    const auto read = [&](const char* key, std::uint64_t& to) {
        const auto found = run.is_object() ? run.find(key) : run.end();
        if (found != run.end() && found->is_number_unsigned()) to = found->get<std::uint64_t>();
    };
    read("start_ticks", interval.from);
    read("stop_ticks", interval.to);
    return interval;
}

std::vector<Interval> open_intervals(std::span<const gpu::Tag> tags, Interval within) {
    std::vector<Interval> open;
    std::optional<bool> state;
    std::uint64_t since = within.from;
    const auto add = [&](std::uint64_t to) {
        const Interval part{std::max(since, within.from), std::min(to, within.to)};
        if (part.from < part.to) open.push_back(part);
    };
    for (const gpu::Tag& tag : tags) {
        if (!is(tag, gpu::TagKind::gate)) continue;
        const bool opens = tag.value != 0;
        const bool was_open = state.value_or(!opens);
        if (was_open && !opens) add(tag.time);
        if (!was_open && opens) since = tag.time;
        state = opens;
    }
    if (!state) throw BadInput("the channel has triggers, but no gate");
    if (*state) add(within.to);
    return open;
}

Cycles::Cycles(std::span<const gpu::Tag> tags, const CycleLimits& limits) {
    const std::vector<gpu::Tag> starts = starts_in(tags);
    double sum = 0;
    for (std::size_t i = 1; i < starts.size(); ++i) {
        const Interval cycle{starts[i - 1].time, starts[i].time};
        const std::uint64_t period = cycle.to - cycle.from;
        if (!follow(starts[i - 1], starts[i]) || period < std::max<std::uint64_t>(limits.shortest, 1) ||
            period > limits.longest) {
            ++rejected_;
            continue;
        }
        accepted_.push_back(cycle);
        sum += static_cast<double>(period);
    }
    if (accepted_.empty()) return;
    const auto count = static_cast<double>(accepted_.size());
    mean_ = sum / count;
    double squares = 0;
    for (const Interval& cycle : accepted_) {
        const double away = static_cast<double>(cycle.to - cycle.from) - mean_;
        squares += away * away;
    }
    spread_ = count > 1 ? std::sqrt(squares / (count - 1)) : 0;
}

std::optional<std::uint32_t> Cycles::bin_of(std::uint64_t time, std::uint32_t bins) const {
    const auto next = std::partition_point(accepted_.begin(), accepted_.end(),
                                           [&](const Interval& cycle) { return cycle.to <= time; });
    if (next == accepted_.end() || time < next->from) return {};
    const std::uint64_t length = next->to - next->from;
    const std::uint64_t since = time - next->from;
    if (since < UINT64_MAX / bins) return static_cast<std::uint32_t>(since * bins / length);
    // A cycle of weeks: the same without overflow.
    std::uint32_t bin = 0;
    while (bin + 1 < bins && begin_of_bin(bin + 1, length, bins) <= since)
        ++bin;
    return bin;
}

std::vector<std::uint64_t> Cycles::live_ticks(std::uint32_t bins) const {
    std::vector<std::uint64_t> live(bins);
    for (const Interval& cycle : accepted_) {
        const std::uint64_t length = cycle.to - cycle.from;
        for (std::uint32_t b = 0; b < bins; ++b)
            live[b] += begin_of_bin(b + 1, length, bins) - begin_of_bin(b, length, bins);
    }
    return live;
}

}  // namespace petacq::petlm

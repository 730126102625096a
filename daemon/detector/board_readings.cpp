#include "daemon/detector/board_readings.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace petacq::daemon {

namespace {

constexpr std::uint64_t parts_per_second = 64;

}  // namespace

BoardReadings::BoardReadings(std::uint64_t second, std::uint32_t bdm_count, bool loss_known,
                             const std::vector<SourceModules>& sources)
    : second_(second),
      part_((second + parts_per_second - 1) / parts_per_second),
      bdm_count_(bdm_count),
      loss_known_(loss_known),
      carriers_(bdm_count) {
    for (const SourceModules& source : sources) {
        const std::size_t number = numbers_.try_emplace(source.source, numbers_.size()).first->second;
        for (const std::uint32_t bdm : source.bdms)
            if (bdm < bdm_count) carriers_[bdm].push_back(number);
    }
    last_tag_.assign(numbers_.size(), unknown_time);
}

std::uint64_t BoardReadings::length_of_part(std::uint64_t start) const {
    return std::min(part_, second_ - start % second_);
}

/// Makes the part that holds the time the open one. False if there are too many before it.
bool BoardReadings::open(std::uint64_t time) {
    const std::uint64_t start = time - time % second_ % part_;
    const auto place = [&] {
        return std::lower_bound(parts_.begin(), parts_.end(), start,
                                [](const SecondPart& p, std::uint64_t s) { return p.start < s; });
    };
    auto found = place();
    if (found == parts_.end() || found->start != start) {
        if (parts_.size() == max_parts) {
            if (found == parts_.end()) return false;
            spare_.push_back(std::move(parts_.back().modules));
            parts_.pop_back();
        }
        std::vector<Temperature> modules;
        if (!spare_.empty()) {
            modules = std::move(spare_.back());
            spare_.pop_back();
        }
        modules.assign(bdm_count_, {});
        found = parts_.insert(place(), {start, std::move(modules)});
    }
    open_start_ = start;
    open_length_ = length_of_part(start);
    open_ = found->modules.data();
    return true;
}

void BoardReadings::add_lost(std::uint64_t time, std::int64_t change) {
    if (losses_.size() < max_losses) {
        losses_.push_back({time, change});
    } else {
        losses_.back().change += change;
    }
}

void BoardReadings::add_unnumbered(std::uint64_t time) {
    // One in a part is enough, and the latest ones are the likeliest to be of the same.
    if (!losses_.empty() && !losses_.back().known && losses_.back().time / part_ == time / part_) return;
    if (losses_.size() < max_losses) losses_.push_back({time, 0, false});
}

void BoardReadings::add(std::span<const gpu::Tag> tags) {
    for (const gpu::Tag& tag : tags) {
        if (tag.kind != static_cast<std::uint8_t>(gpu::TagKind::dead_time)) continue;
        const auto number = numbers_.find(tag.source);
        if (number == numbers_.end()) continue;
        BlindSecond& second =
            blind_.try_emplace(tag.time / second_, numbers_.size()).first->second[number->second];
        std::uint64_t& before = last_tag_[number->second];
        // One of more than a second ago may not be the one before it.
        const bool follows = before != unknown_time && before < tag.time && tag.time - before < second_;
        second.last = {follows ? before : unknown_time, tag.time, static_cast<double>(tag.value)};
        if (std::isnan(second.ticks)) {
            second.first = second.last;
            second.ticks = 0;
        }
        second.ticks += tag.value;
        before = tag.time;
    }
}

void BoardReadings::take(gpu::TickRange range, BoardReport& report) {
    take_temperatures(range, report.temperature_C);
    take_dead_time(range, report.dead_time);
    std::int64_t lost = 0;
    bool known = loss_known_;
    std::erase_if(losses_, [&](const Loss& loss) {
        if (loss.time >= range.end) return false;
        lost += loss.change;
        known = known && loss.known;
        return true;
    });
    report.lost = known ? static_cast<double>(lost) : BoardReport::unknown;
}

void BoardReadings::take_temperatures(gpu::TickRange range, std::vector<double>& means) {
    std::vector<Temperature> sums(bdm_count_);
    auto part = parts_.begin();
    for (; part != parts_.end() && part->start < range.end; ++part) {
        if (part->start >= range.start && range.end - part->start >= length_of_part(part->start)) {
            for (std::uint32_t bdm = 0; bdm < bdm_count_; ++bdm) {
                sums[bdm].sum_16ths += part->modules[bdm].sum_16ths;
                sums[bdm].datagrams += part->modules[bdm].datagrams;
            }
        }
        spare_.push_back(std::move(part->modules));
    }
    parts_.erase(parts_.begin(), part);
    open_length_ = 0;
    means.assign(bdm_count_, BoardReport::unknown);
    for (std::uint32_t bdm = 0; bdm < bdm_count_; ++bdm) {
        const Temperature& t = sums[bdm];
        if (t.datagrams != 0)
            means[bdm] = static_cast<double>(t.sum_16ths) / 16 / static_cast<double>(t.datagrams);
    }
}

double BoardReadings::blind_ticks(const BlindSecond& tags, gpu::TickRange range) {
    double ticks = tags.ticks;
    const Blind& first = tags.first;
    if (first.since != unknown_time && first.since < range.start) {
        ticks -= first.ticks * static_cast<double>(range.start - first.since) /
                 static_cast<double>(first.time - first.since);
    }
    const Blind& last = tags.last;
    const std::uint64_t since = last.since != unknown_time ? last.since : range.start;
    const std::uint64_t told = last.time - std::min(since, last.time);
    const std::uint64_t rest = range.end - last.time;
    if (told > 0 && rest <= told + told / 2)
        ticks += last.ticks * static_cast<double>(rest) / static_cast<double>(told);
    return ticks;
}

/// Tags of later seconds may be there; those of a later segment are not.
void BoardReadings::take_dead_time(gpu::TickRange range, std::vector<double>& ticks) {
    std::vector<BlindSecond> tags(numbers_.size());
    while (!blind_.empty() && blind_.begin()->first * second_ < range.end) {
        const std::vector<BlindSecond>& more = blind_.begin()->second;
        for (std::size_t i = 0; i < tags.size(); ++i) {
            if (std::isnan(more[i].ticks)) continue;
            if (std::isnan(tags[i].ticks)) {
                tags[i] = more[i];
            } else {
                tags[i].ticks += more[i].ticks;
                tags[i].last = more[i].last;
            }
        }
        blind_.erase(blind_.begin());
    }
    std::vector<double> sources;
    for (const BlindSecond& of_source : tags)
        sources.push_back(std::isnan(of_source.ticks) ? BoardReport::unknown : blind_ticks(of_source, range));
    ticks.assign(bdm_count_, BoardReport::unknown);
    for (std::uint32_t bdm = 0; bdm < bdm_count_; ++bdm) {
        double sum = 0;
        int count = 0;
        for (const std::size_t number : carriers_[bdm]) {
            if (std::isnan(sources[number])) continue;
            sum += sources[number];
            ++count;
        }
        if (count != 0) ticks[bdm] = sum / count;
    }
}

void BoardReadings::clear() {
    std::fill(last_tag_.begin(), last_tag_.end(), unknown_time);
    for (SecondPart& part : parts_)
        spare_.push_back(std::move(part.modules));
    parts_.clear();
    open_length_ = 0;
    losses_.clear();
    blind_.clear();
}

}  // namespace petacq::daemon

// The tags of a source between its hits.
#include <algorithm>

#include "gpu/types.hpp"
#include "tools/petsim/simulation/stream.hpp"

namespace petacq::sim {

void SourceStream::append_tag(const net::TagFrame& tag) {
    if (tag.time < silent_until_) {
        ++statistics_.tags_silenced;
        return;
    }
    std::byte* const place = next_frame(tag.time);
    net::TagFrame frame = tag;
    frame.time += shift_;
    net::encode_tag(frame, place);
    if (output_.want_truth) {
        TruthRecord record;
        record.annihilation = truth_of_tag(tag.channel, tag.kind, tag.value);
        record.time = frame.time;
        record.crystal = no_crystal;
        record.flags = truth_tag;
        note_truth(record);
    }
    ++statistics_.tags;
    ++tag_count_;
    count_frame(tag.time);
}

void SourceStream::send_tags(std::uint64_t time) {
    for (; tags_done_ < tags_.size() && tags_[tags_done_].time <= time; ++tags_done_)
        append_tag(tags_[tags_done_]);
    tag_at_ = tags_done_ < tags_.size() ? tags_[tags_done_].time : never;
}

// The mean of the units of the source. What is lost to rounding comes with the next tag.
void SourceStream::send_dead_time(std::uint64_t time) {
    std::uint64_t to_come = 0;
    for (const std::uint32_t unit : units_)
        to_come += std::max(ready_[unit], time) - time;
    const std::uint64_t blind = (blind_ - to_come) / units_.size();
    append_tag({options_.wire.tag_marker, options_.tags.dead_time->channel,
                static_cast<std::uint8_t>(gpu::TagKind::dead_time), time,
                static_cast<std::uint32_t>(blind - blind_reported_), options_.wire.tail_marker});
    blind_reported_ = blind;
    dead_time_tag_at_ = time + dead_time_step_;
}

}  // namespace petacq::sim

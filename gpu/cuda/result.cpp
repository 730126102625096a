#include "gpu/cuda/result.hpp"

#include <algorithm>

#include "gpu/host/coincidence.hpp"

namespace petacq::gpu::cuda {

namespace {

/// Sorts the records that share the time of records[at].
void order_time_of(std::span<Coincidence> records, std::size_t at) {
    const std::uint64_t time = records[at].time;
    std::size_t first = at;
    while (first > 0 && records[first - 1].time == time)
        --first;
    std::size_t last = at + 1;
    while (last < records.size() && records[last].time == time)
        ++last;
    std::sort(records.begin() + static_cast<std::ptrdiff_t>(first),
              records.begin() + static_cast<std::ptrdiff_t>(last),
              [](const Coincidence& a, const Coincidence& b) { return before(a, b); });
}

}  // namespace

FrameCounts frame_counts(const Slot& slot) {
    const auto fate = [&](Fate f) { return slot.host_converted->fates[static_cast<std::size_t>(f)]; };
    FrameCounts c;
    c.received = slot.frames;
    c.bad_marker = fate(Fate::bad_marker);
    c.bad_address = fate(Fate::bad_address);
    c.outside_crystal = fate(Fate::outside_crystal);
    c.below_window = fate(Fate::below_window);
    c.above_window = fate(Fate::above_window);
    c.bad_time = fate(Fate::bad_time);
    c.time_jump = fate(Fate::time_jump);
    c.late = fate(Fate::late);
    c.accepted = fate(Fate::accepted);
    return c;
}

void RecordOrder::take(Slot& slot, WorkerPool& pool, std::vector<Coincidence>& out) {
    std::span<Coincidence> records(slot.host_records, slot.record_count);
    if (!slot.many_records.empty()) {
        records = slot.many_records;
    } else if (slot.host_found->disorders > disorder_room) {
        order_equal_times(records);
    } else {
        for (std::uint32_t i = 0; i < slot.host_found->disorders; ++i)
            order_time_of(records, slot.host_found->disorder_at[i]);
    }
    std::size_t end = records.size();
    if (!slot.close_at) {
        const auto hold = std::partition_point(records.begin(), records.end(),
                                               [&](const Coincidence& c) { return c.time < slot.horizon; });
        end = static_cast<std::size_t>(hold - records.begin());
    }
    // Held records are few, and only the first of the new records can belong among them.
    std::size_t mixed = 0;
    // Reserve some extra room, because slices vary in size.
    const std::size_t most = held_.size() + end;
    if (out.capacity() < most) out.reserve(most + most / 8);
    out.resize(most);
    if (!held_.empty()) {
        const std::uint64_t last = held_.back().time;
        mixed = static_cast<std::size_t>(
            std::partition_point(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(end),
                                 [=](const Coincidence& c) { return c.time <= last; }) -
            records.begin());
        std::merge(held_.begin(), held_.end(), records.begin(),
                   records.begin() + static_cast<std::ptrdiff_t>(mixed), out.begin(),
                   [](const Coincidence& a, const Coincidence& b) { return before(a, b); });
    }
    copy_many<Coincidence>(pool, records.data() + mixed, end - mixed, out.data() + held_.size() + mixed);
    if (!slot.close_at) {
        // Records at or above the horizon stay held back; the watermark may not have moved.
        const auto hold = std::partition_point(out.begin(), out.end(),
                                               [&](const Coincidence& c) { return c.time < slot.horizon; });
        next_held_.assign(hold, out.end());
        next_held_.insert(next_held_.end(), records.begin() + static_cast<std::ptrdiff_t>(end),
                          records.end());
        std::sort(next_held_.begin(), next_held_.end(),
                  [](const Coincidence& a, const Coincidence& b) { return before(a, b); });
        out.erase(hold, out.end());
        std::swap(held_, next_held_);
    } else {
        held_.clear();
    }
}

}  // namespace petacq::gpu::cuda

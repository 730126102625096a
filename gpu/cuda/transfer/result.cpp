#include "gpu/cuda/transfer/result.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <span>

#include "gpu/record_order.hpp"

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

/// Writes records [begin, end) of the slice to `to`.
void unpack(const Slot& slot, std::size_t begin, std::size_t end, Coincidence* to) {
    if (!slot.packing.fits) {
        const auto* const from = reinterpret_cast<const Coincidence*>(slot.host_records);
        std::copy(from + begin, from + end, to);
        return;
    }
    const auto* const from = reinterpret_cast<const PackedRecord*>(slot.host_records);
    const RecordPacking packing = slot.packing;
    for (std::size_t i = begin; i < end; ++i)
        *to++ = packing.unpack(from[i]);
}

}  // namespace

void advise_large_pages(void* memory, std::size_t bytes) {
    constexpr std::uintptr_t page = std::uintptr_t{2} << 20;
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    const std::uintptr_t first = (begin + page - 1) / page * page;
    const std::uintptr_t last = (begin + bytes) / page * page;
    // Only a hint: without them the result is the same.
    if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

void take_tags(Slot& slot) {
    const std::span<const SpanRow> rows = slot.host_rows();
    for (const TagCell& tag : slot.tag_cells) {
        const auto next = std::partition_point(rows.begin(), rows.end(),
                                               [&](const SpanRow& row) { return row.first <= tag.cell; });
        const auto i = static_cast<std::size_t>(next - rows.begin()) - 1;
        slot.tags.take(tag.frame, slot.tag_sources[i], TimeGuard::of(rows[i].time_low, rows[i].time_high),
                       slot.late_below);
    }
}

FrameCounts frame_counts(const Slot& slot) {
    const auto fate = [&](Fate f) { return slot.host_converted->fates[static_cast<std::size_t>(f)]; };
    FrameCounts c;
    c.received = slot.frames - slot.tags.counts.received;
#define PETACQ_TAKE(section, name, ...) c.name = fate(Fate::name);
    PETACQ_FATES(PETACQ_TAKE)
#undef PETACQ_TAKE
    return c;
}

void copy_sums(const Slot& slot, IntervalSums& out) {
    const SumArrays& sums = slot.host_sums;
    const std::uint32_t crystals = slot.histogram_sizes.crystals;
    out.unpaired.assign(sums.unpaired, sums.unpaired + crystals);
    out.grouped.assign(sums.grouped, sums.grouped + crystals);
    out.prompts.assign(sums.prompts, sums.prompts + crystals);
    out.delayeds.assign(sums.delayeds, sums.delayeds + crystals);
    out.modules.assign(sums.module_count, {});
    for (std::uint32_t i = 0; i < SumArrays::module_copies * sums.module_count; ++i)
        out.modules[i % sums.module_count] += sums.modules[i];
    const std::uint32_t pairs = sums.module_count * sums.module_count;
    out.module_pairs.assign(pairs, 0);
    for (std::uint32_t copy = 0; copy < SumArrays::module_copies; ++copy) {
        for (std::uint32_t i = 0; i < pairs; ++i)
            out.module_pairs[i] += sums.module_pairs[copy * pairs + i];
    }
}

void RecordOrder::take(Slot& slot, net::WorkerPool& pool, RecordVector<Coincidence>& out) {
    const bool many = !slot.many_records.empty();
    const std::size_t count = many ? slot.many_records.size() : slot.record_count;
    const std::size_t held = held_.size();
    fill(pool, held + count, out, [&](std::size_t begin, std::size_t end, Coincidence* to) {
        for (; begin < std::min(end, held); ++begin)
            *to++ = held_[begin];
        if (begin >= end) return;
        if (many) {
            std::copy(slot.many_records.data() + (begin - held), slot.many_records.data() + (end - held), to);
        } else {
            unpack(slot, begin - held, end - held, to);
        }
    });
    const std::span<Coincidence> records = std::span(out).subspan(held);
    if (!many && slot.host_found->disorders > disorder_room) {
        order_equal_times(records);
    } else if (!many) {
        for (std::uint32_t i = 0; i < slot.host_found->disorders; ++i)
            order_time_of(records, slot.host_found->disorder_at[i]);
    }
    if (held > 0) {
        // Held records are few, and only the first of the new records can belong among them.
        const std::uint64_t last = held_.back().time;
        const auto mixed = std::partition_point(records.begin(), records.end(),
                                                [=](const Coincidence& c) { return c.time <= last; });
        mixed_.resize(held + static_cast<std::size_t>(mixed - records.begin()));
        std::merge(held_.begin(), held_.end(), records.begin(), mixed, mixed_.begin(),
                   [](const Coincidence& a, const Coincidence& b) { return before(a, b); });
        std::copy(mixed_.begin(), mixed_.end(), out.begin());
    }
    held_.clear();
    if (slot.ends_segment()) return;
    // The watermark may not have moved: records that were held may stay so.
    const auto hold = std::partition_point(out.begin(), out.end(),
                                           [&](const Coincidence& c) { return c.time < slot.horizon; });
    held_.assign(hold, out.end());
    out.erase(hold, out.end());
}

}  // namespace petacq::gpu::cuda

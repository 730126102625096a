#include "gpu/cuda/transfer/result.hpp"

#include <algorithm>
#include <span>

#include "gpu/cuda/base/fill.hpp"
#include "gpu/rules/record_order.hpp"

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
void unpack(const SliceRecords& records, std::size_t begin, std::size_t end, Coincidence* to) {
    if (!records.packing.fits) {
        const auto* const from = reinterpret_cast<const Coincidence*>(records.host_packed);
        std::copy(from + begin, from + end, to);
        return;
    }
    const auto* const from = reinterpret_cast<const PackedRecord*>(records.host_packed);
    const RecordPacking packing = records.packing;
    for (std::size_t i = begin; i < end; ++i)
        *to++ = packing.unpack(from[i]);
}

/// Adds the tags that conversion has found to slice.tags.
void take_tags(DeviceSlice& slice, config::FrameVersion version) {
    const std::span<const SpanRow> rows = slice.frames.host_rows();
    for (const TagCell& tag : slice.singles.host_tags) {
        const auto next = std::partition_point(rows.begin(), rows.end(),
                                               [&](const SpanRow& row) { return row.first <= tag.cell; });
        const auto i = static_cast<std::size_t>(next - rows.begin()) - 1;
        slice.tags.take(tag.frame, slice.frames.tag_sources[i],
                        TimeGuard::of(rows[i].time_low, rows[i].time_high), slice.late_below, version);
    }
}

/// After take_tags().
FrameCounts frame_counts(const DeviceSlice& slice) {
    const auto fate = [&](Fate f) { return slice.singles.host_totals->fates[static_cast<std::size_t>(f)]; };
    FrameCounts c;
    c.received = slice.frames.count - slice.tags.counts.received;
#define PETACQ_TAKE(section, name, ...) c.name = fate(Fate::name);
    PETACQ_FATES(PETACQ_TAKE)
#undef PETACQ_TAKE
    return c;
}

/// Copies the sums of an interval, without the counts.
void copy_sums(const SumArrays& sums, std::uint32_t crystals, IntervalSums& out) {
    out.unpaired.assign(sums.unpaired, sums.unpaired + crystals);
    out.grouped.assign(sums.grouped, sums.grouped + crystals);
    out.prompts.assign(sums.prompts, sums.prompts + crystals);
    out.delayeds.assign(sums.delayeds, sums.delayeds + crystals);
    out.modules.assign(sums.module_count, {});
    for (std::uint32_t i = 0; i < SumArrays::module_copies * sums.module_count; ++i)
        out.modules[i % sums.module_count] += sums.modules[i];
    const std::uint32_t pairs = sums.sector_count * sums.sector_count;
    out.module_pairs.assign(pairs, 0);
    out.refused_pairs.assign(pairs, 0);
    for (std::uint32_t copy = 0; copy < SumArrays::module_copies; ++copy) {
        for (std::uint32_t i = 0; i < pairs; ++i) {
            out.module_pairs[i] += sums.module_pairs[copy * pairs + i];
            out.refused_pairs[i] += sums.refused_pairs[copy * pairs + i];
        }
    }
    out.energies.assign(energy_samples, 0);
    for (std::uint32_t i = 0; i < SumArrays::module_copies * energy_samples; ++i)
        out.energies[i % energy_samples] += sums.energies[i];
}

}  // namespace

ResultAssembly::ResultAssembly(const PipelineOptions& options)
    : crystals_(options.geometry.crystal_count()),
      version_(options.frame_version),
      with_gammas_(options.rules.gammas.has_value()),
      copiers_(fill_threads(options.threads)) {}

void ResultAssembly::assemble(DeviceSlice& slice) {
    const Slice& input = slice.input;
    const SliceRecords& from = slice.records;
    SliceResult& result = slice.result;
    result.id = input.id;
    take_tags(slice, version_);
    result.frames = frame_counts(slice);
    if (input.ends_interval) copy_sums(from.host_sums, crystals_, result.sums);
    result.tag_counts = slice.tags.counts;
    tags_.add(slice.tags.tags);
    tags_.release(input.watermark, input.close_at, result.tags);
    result.latest_pending_time = result.pending > 0 ? from.newest : 0;
    tags_.describe(result);
    take_records(slice, result.coincidences);
    result.triples.clear();
    result.gamma_counts = {};
    result.sums.gammas = {};
    if (with_gammas_) {
        result.singles.clear();
        return;
    }
    const std::span<const Single> singles = from.singles();
    fill(copiers_, singles.size(), result.singles, [=](std::size_t begin, std::size_t end, Single* to) {
        std::ranges::copy(singles.subspan(begin, end - begin), to);
    });
}

/// Writes the held records and those of the slice to `out` in record order. Those at or above the horizon of
/// the slice are held back until the next slice, because delayeds with the same time may still follow.
void ResultAssembly::take_records(const DeviceSlice& slice, RecordVector<Coincidence>& out) {
    const SliceRecords& from = slice.records;
    const bool many = !from.many.empty();
    const std::size_t count = many ? from.many.size() : from.count;
    const std::size_t held = held_.size();
    fill(copiers_, held + count, out, [&](std::size_t begin, std::size_t end, Coincidence* to) {
        for (; begin < std::min(end, held); ++begin)
            *to++ = held_[begin];
        if (begin >= end) return;
        if (many) {
            std::copy(from.many.data() + (begin - held), from.many.data() + (end - held), to);
        } else {
            unpack(from, begin - held, end - held, to);
        }
    });
    const std::span<Coincidence> records = std::span(out).subspan(held);
    if (!many && from.host_totals->disorders > disorder_room) {
        order_equal_times(records);
    } else if (!many) {
        for (std::uint32_t i = 0; i < from.host_totals->disorders; ++i)
            order_time_of(records, from.host_totals->disorder_at[i]);
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
    if (slice.input.ends_segment()) return;
    // The watermark may not have moved: records that were held may stay so.
    const auto hold = std::partition_point(out.begin(), out.end(),
                                           [&](const Coincidence& c) { return c.time < from.horizon; });
    held_.assign(hold, out.end());
    out.erase(hold, out.end());
}

void ResultAssembly::reset() {
    held_.clear();
    tags_.reset();
}

}  // namespace petacq::gpu::cuda

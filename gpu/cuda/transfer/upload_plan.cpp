#include "gpu/cuda/transfer/upload_plan.hpp"

#include <algorithm>

namespace petacq::gpu::cuda {

UploadPlan::UploadPlan(std::uint32_t gap_room, std::uint32_t row_room, bool by_source)
    : gap_room_(gap_room), row_room_(row_room), by_source_(by_source) {
    stretches_.reserve(row_room);
    rows_.reserve(row_room);
    tag_sources_.reserve(row_room);
    copies_.reserve(row_room);
}

void UploadPlan::start(SpanTable& table) {
    table_ = &table;
    next_cell_ = 0;
    gaps_ = 0;
}

bool UploadPlan::add(std::span<const FrameSpan> part) {
    stretches_.clear();
    rows_.clear();
    tag_sources_.clear();
    copies_.clear();
    for (const FrameSpan& span : part) {
        if (span.count == 0) continue;
        if (span.datagrams == 1 || has_room(span)) {
            if (!gather(span)) return false;
            continue;
        }
        for (std::uint32_t i = 0; i < span.datagrams; ++i)
            if (!gather(span.datagram(i))) return false;
    }
    place_stretches();
    return true;
}

bool UploadPlan::joins(const std::byte* end, const std::byte* begin, std::uint32_t& gap) const {
    // Wraps around for a span at a lower address.
    const std::uint64_t bytes =
        reinterpret_cast<std::uintptr_t>(begin) - reinterpret_cast<std::uintptr_t>(end);
    if (bytes > copied_gap || bytes % net::frame_bytes != 0) return false;
    gap = static_cast<std::uint32_t>(bytes / net::frame_bytes);
    return gaps_ + gap <= gap_room_;
}

/// Cells between the datagrams of a span.
std::uint32_t UploadPlan::gap_in(const FrameSpan& span) {
    return span.datagrams == 1 ? 0 : static_cast<std::uint32_t>(span.stride / net::frame_bytes) - span.count;
}

/// Whether one row can hold the datagrams of the span.
bool UploadPlan::has_room(const FrameSpan& span) const {
    const std::uint32_t gap = gap_in(span);
    return gap * net::frame_bytes <= copied_gap && gaps_ + std::uint64_t{gap} * span.datagrams <= gap_room_;
}

bool UploadPlan::gather(const FrameSpan& span) {
    const std::uint32_t between = gap_in(span);
    gaps_ += between * (span.datagrams - 1);
    std::uint32_t gap = 0;
    const bool joined = !stretches_.empty() && joins(stretches_.back().end, span.frames, gap);
    const std::uint32_t cells = (span.count + between) * span.datagrams - between;
    const std::byte* const end = span.frames + std::size_t{cells} * net::frame_bytes;
    const std::uint32_t source = by_source_ ? span.source : 0;
    if (joined) {
        gaps_ += gap;
        stretches_.back().end = end;
        if (extend_row(span, source, gap)) return true;
    }
    const auto row = static_cast<std::uint32_t>(rows_.size());
    if (table_->row_count + row == row_room_) return false;
    if (!joined) stretches_.push_back({span.frames, end, row, 0});
    Stretch& stretch = stretches_.back();
    ++stretch.rows;
    const auto first = static_cast<std::uint32_t>((span.frames - stretch.begin) /
                                                  static_cast<std::ptrdiff_t>(net::frame_bytes));
    rows_.push_back(
        {first, cells, span.count, source << SpanRow::gap_bits | between, span.time_low, span.time_high});
    tag_sources_.push_back(span.tag_source);
    full_ = true;
    return true;
}

/// Adds a span that lies `gap` cells behind the last row to it, if it has the shape of the others.
bool UploadPlan::extend_row(const FrameSpan& span, std::uint32_t source, std::uint32_t gap) {
    SpanRow& row = rows_.back();
    const bool alike = row.time_low == span.time_low && row.time_high == span.time_high &&
                       row.source() == source && tag_sources_.back() == span.tag_source;
    if (!alike || !full_) return false;
    const bool one_span = row.cells == row.count;
    if (gap == 0) {
        if (!one_span || span.datagrams > 1) return false;
        row.count += span.count;
        row.cells += span.count;
        return true;
    }
    if (span.datagrams > 1 && (gap_in(span) != gap || span.count != row.count)) return false;
    if (span.count > row.count || (!one_span && row.gap() != gap)) return false;
    row.shape = source << SpanRow::gap_bits | gap;
    row.cells += (gap + span.count) * span.datagrams;
    full_ = span.count == row.count;
    return true;
}

/// Gives the spans of the part their cells, in the order of their addresses.
void UploadPlan::place_stretches() {
    std::sort(stretches_.begin(), stretches_.end(),
              [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
    const std::byte* end = nullptr;
    for (const Stretch& stretch : stretches_) {
        const auto cells = static_cast<std::uint32_t>((stretch.end - stretch.begin) /
                                                      static_cast<std::ptrdiff_t>(net::frame_bytes));
        std::uint32_t gap = 0;
        if (!copies_.empty() && joins(end, stretch.begin, gap)) {
            gaps_ += gap;
            next_cell_ += gap;
            copies_.back().cells += gap + cells;
        } else {
            copies_.push_back({stretch.begin, next_cell_, cells});
        }
        for (std::uint32_t i = 0; i < stretch.rows; ++i) {
            SpanRow row = rows_[stretch.first_row + i];
            row.first += next_cell_;
            table_->enter(row, tag_sources_[stretch.first_row + i]);
        }
        next_cell_ += cells;
        end = stretch.end;
    }
}

}  // namespace petacq::gpu::cuda

#include "gpu/cuda/transfer/upload.hpp"

#include <fmt/format.h>
#include <cstring>
#include <nvtx3/nvtx3.hpp>
#include <stdexcept>
#include <utility>

#include "gpu/arithmetic.hpp"
#include "gpu/cuda/base/check.hpp"
#include "gpu/cuda/transfer/transfers.hpp"

namespace petacq::gpu::cuda {

namespace {

/// A slice is planned and sent in parts of this many frames: the first part travels while the next one is
/// being planned.
constexpr std::uint64_t part_frames = std::uint64_t{2} << 20;
/// Smaller pieces are staged: a copy of their own costs more than copying them on the host.
constexpr std::size_t staged_bytes = std::size_t{8} << 10;

constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
constexpr std::size_t chunk_count = 4;
static_assert(staged_bytes <= chunk_bytes);

void copy_up(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync",
          "copying frames to the device");
}

}  // namespace

Staging::Staging(Memory& memory) {
    for (std::size_t i = 0; i < chunk_count; ++i) {
        chunks_.push_back(std::make_unique<Chunk>());
        chunks_.back()->memory = memory.pinned<std::byte>(chunk_bytes);
    }
}

void Staging::add(net::FrameWords* to, const std::byte* from, std::size_t bytes, cudaStream_t stream) {
    const bool follows = to == to_ + used_ / net::frame_bytes;
    if (used_ > 0 && (!follows || used_ + bytes > chunk_bytes)) send_chunk(stream);
    Chunk& chunk = *chunks_[current_];
    if (used_ == 0) {
        chunk.sent.wait("copying frames to the device");
        to_ = to;
    }
    std::memcpy(chunk.memory + used_, from, bytes);
    used_ += bytes;
}

std::uint32_t Staging::send(cudaStream_t stream) {
    if (used_ > 0) send_chunk(stream);
    return std::exchange(copies_, 0);
}

void Staging::send_chunk(cudaStream_t stream) {
    Chunk& chunk = *chunks_[current_];
    copy_up(to_, chunk.memory, used_, stream);
    chunk.sent.record(stream);
    current_ = (current_ + 1) % chunk_count;
    used_ = 0;
    ++copies_;
}

Uploader::Uploader(const PipelineOptions& options, Memory& memory)
    : plan_(Slot::gap_room(options), Slot::table_rows(options), !options.sources.empty()), staging_(memory) {}

void Uploader::upload(std::span<const FrameSpan> spans, Slot& slot, cudaStream_t stream) {
    const nvtx3::scoped_range range{"upload"};
    slot.copies = 0;
    slot.tags.clear();
    SpanTable table = slot.host_span_table();
    if (!place(spans, slot, table, stream)) {
        table = slot.host_span_table();
        pack(spans, slot, table, stream);
    }
    slot.copies += staging_.send(stream);
    table.finish(slot.cell_count);
    slot.row_count = table.row_count;
}

/// False: the table has no room for the rows.
bool Uploader::place(std::span<const FrameSpan> spans, Slot& slot, SpanTable& table, cudaStream_t stream) {
    plan_.start(table);
    std::uint64_t frames = 0;
    for (std::size_t begin = 0; begin < spans.size();) {
        std::size_t end = begin;
        for (const std::uint64_t enough = frames + part_frames; end < spans.size() && frames < enough; ++end)
            frames += spans[end].total();
        if (frames > slot.frame_room) {
            throw std::runtime_error(fmt::format(
                "a slice of {} frames or more: at most {} (max_slice_frames)", frames, slot.frame_room));
        }
        if (!plan_.add(spans.subspan(begin, end - begin))) return false;
        for (const Piece& piece : plan_.pieces())
            copy(piece, slot, stream);
        begin = end;
    }
    slot.frames = static_cast<std::uint32_t>(frames);
    slot.cell_count = plan_.cells();
    return true;
}

void Uploader::copy(const Piece& piece, Slot& slot, cudaStream_t stream) {
    const std::size_t bytes = std::size_t{piece.cells} * net::frame_bytes;
    net::FrameWords* const to = slot.cells + piece.cell;
    if (bytes <= staged_bytes) return staging_.add(to, piece.from, bytes, stream);
    copy_up(to, piece.from, bytes, stream);
    ++slot.copies;
}

namespace {

/// Frames that are packed together: those inside the time windows of their spans; those outside, which get an
/// empty window; those with a module that is not their source's.
enum class Lot : std::uint8_t { inside, outside, foreign };

std::uint64_t time_of(const std::byte* frame, Input input) {
    if (input == Input::frames) return net::frame_time(frame);
    std::uint64_t time = 0;
    std::memcpy(&time, frame + offsetof(Single, time), sizeof time);
    return time;
}

bool is_tag_of(const Slot& slot, const std::byte* frame) {
    const net::FrameWords w = net::load_frame(frame);
    return slot.input == Input::frames && !markers_match(w, slot.markers) && is_tag(w, slot.markers);
}

void take_tag(const std::byte* frame, const FrameSpan& span, Slot& slot) {
    slot.tags.take(net::load_frame(frame), span.tag_source, TimeGuard::of(span.time_low, span.time_high),
                   slot.late_below);
}

Lot lot_of(const std::byte* frame, const FrameSpan& span, const Slot& slot) {
    const bool listed = !slot.sources.empty() && span.source != 0;
    if (listed && !slot.sources[span.source - 1][net::frame_bdm(frame)]) return Lot::foreign;
    const TimeGuard guard = TimeGuard::of(span.time_low, span.time_high);
    return guard.refuses(time_of(frame, slot.input)) ? Lot::outside : Lot::inside;
}

}  // namespace

/// For slices whose spans are too many and too unlike for the table: judges every frame here, so that a row
/// for each lot will do. Tags stay on the host.
void Uploader::pack(std::span<const FrameSpan> spans, Slot& slot, SpanTable& table, cudaStream_t stream) {
    std::uint64_t frames = 0;
    for (const FrameSpan& span : spans)
        frames += span.total();
    if (frames > slot.frame_room) {
        throw std::runtime_error(
            fmt::format("a slice of {} frames: at most {} (max_slice_frames)", frames, slot.frame_room));
    }
    std::uint32_t next = 0;
    for (const Lot lot : {Lot::inside, Lot::outside, Lot::foreign}) {
        const std::uint32_t first = next;
        for (const FrameSpan& span : spans) {
            for (std::uint64_t k = 0; k < span.total(); ++k) {
                const std::byte* const frame =
                    span.frames + k / span.count * span.stride + k % span.count * net::frame_bytes;
                if (is_tag_of(slot, frame)) {
                    if (lot == Lot::inside) take_tag(frame, span, slot);
                    continue;
                }
                if (lot_of(frame, span, slot) == lot)
                    staging_.add(slot.cells + next++, frame, net::frame_bytes, stream);
            }
        }
        if (next == first) continue;
        const bool outside = lot == Lot::outside;
        // The source after the last one has no modules.
        const std::uint32_t source =
            lot == Lot::foreign ? static_cast<std::uint32_t>(slot.sources.size()) + 1 : 0;
        table.enter({first, next - first, next - first, source << SpanRow::gap_bits, outside ? 1U : 0U,
                     outside ? 0 : UINT64_MAX},
                    Tag::no_source);
    }
    slot.frames = static_cast<std::uint32_t>(frames);
    slot.cell_count = next;
}

void fetch_table(const Slot& slot, cudaStream_t stream) {
    if (slot.row_count > 0) launch_fetch(slot.table, slot.host_table, slot.table_bytes(), stream);
}

}  // namespace petacq::gpu::cuda

#include "gpu/cuda/transfer/upload.hpp"

#include <fmt/format.h>
#include <cstring>
#include <nvtx3/nvtx3.hpp>
#include <span>
#include <stdexcept>
#include <utility>

#include "gpu/cuda/base/check.hpp"
#include "gpu/cuda/transfer/transfer_kernels.hpp"
#include "gpu/rules/conversion.hpp"

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
        chunks_.push_back(std::make_unique<UploadChunk>());
        chunks_.back()->memory = memory.pinned<std::byte>(chunk_bytes);
    }
}

void Staging::add(net::FrameWords* to, const std::byte* from, std::size_t bytes, cudaStream_t stream) {
    const bool follows = to == to_ + used_ / net::frame_bytes;
    if (used_ > 0 && (!follows || used_ + bytes > chunk_bytes)) send_chunk(stream);
    UploadChunk& chunk = *chunks_[current_];
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
    UploadChunk& chunk = *chunks_[current_];
    copy_up(to_, chunk.memory, used_, stream);
    chunk.sent.record(stream);
    current_ = (current_ + 1) % chunk_count;
    used_ = 0;
    ++copies_;
}

Uploader::Uploader(const PipelineOptions& o, Memory& memory)
    : input_(o.input),
      sources_(o.sources),
      plan_(SliceFrames::gap_room(o), SliceFrames::table_rows(o), !o.sources.empty()),
      staging_(memory) {
    markers_.version = o.frame_version;
    markers_.head_marker = o.head_marker;
    markers_.tail_marker = o.tail_marker;
    markers_.tag_marker = o.tag_marker;
}

void Uploader::upload(DeviceSlice& slice, cudaStream_t stream) {
    const nvtx3::scoped_range range{"upload"};
    SliceFrames& frames = slice.frames;
    frames.copies = 0;
    slice.tags.clear();
    SpanTable table = frames.host_span_table();
    if (!place(slice, table, stream)) {
        table = frames.host_span_table();
        pack(slice, table, stream);
    }
    frames.copies += staging_.send(stream);
    table.finish(frames.cell_count);
    frames.row_count = table.row_count;
}

/// False: the table has no room for the rows.
bool Uploader::place(DeviceSlice& slice, SpanTable& table, cudaStream_t stream) {
    SliceFrames& to = slice.frames;
    const std::span<const FrameSpan> spans = slice.input.spans;
    plan_.start(table);
    std::uint64_t frames = 0;
    for (std::size_t begin = 0; begin < spans.size();) {
        std::size_t end = begin;
        for (const std::uint64_t enough = frames + part_frames; end < spans.size() && frames < enough; ++end)
            frames += spans[end].total();
        if (frames > to.room) {
            throw std::runtime_error(
                fmt::format("a slice of {} frames or more: at most {} (max_slice_frames)", frames, to.room));
        }
        if (!plan_.add(spans.subspan(begin, end - begin))) return false;
        for (const FrameCopy& piece : plan_.copies())
            copy(piece, to, stream);
        begin = end;
    }
    to.count = static_cast<std::uint32_t>(frames);
    to.cell_count = plan_.cells();
    return true;
}

void Uploader::copy(const FrameCopy& piece, SliceFrames& to, cudaStream_t stream) {
    const std::size_t bytes = std::size_t{piece.cells} * net::frame_bytes;
    net::FrameWords* const cells = to.cells + piece.cell;
    if (bytes <= staged_bytes) return staging_.add(cells, piece.from, bytes, stream);
    copy_up(cells, piece.from, bytes, stream);
    ++to.copies;
}

namespace {

std::uint64_t time_of(const std::byte* frame, Input input) {
    if (input == Input::frames) return net::frame_time(frame);
    std::uint64_t time = 0;
    std::memcpy(&time, frame + offsetof(Single, time), sizeof time);
    return time;
}

}  // namespace

bool Uploader::is_tag_frame(const std::byte* frame) const {
    const net::FrameWords w = net::load_frame(frame);
    const auto is_tag_of = [&]<net::FrameVersion version>() {
        return !markers_match<version>(w, markers_) && is_tag<version>(w, markers_);
    };
    return input_ == Input::frames &&
           (markers_.version == net::FrameVersion::one ? is_tag_of.operator()<net::FrameVersion::one>()
                                                       : is_tag_of.operator()<net::FrameVersion::two>());
}

Uploader::Lot Uploader::lot_of(const std::byte* frame, const FrameSpan& span) const {
    const bool listed = !sources_.empty() && span.source != 0;
    if (listed && !sources_[span.source - 1][net::frame_bdm(frame, markers_.version)]) return Lot::foreign;
    const TimeGuard guard = TimeGuard::of(span.time_low, span.time_high);
    return guard.refuses(time_of(frame, input_)) ? Lot::outside : Lot::inside;
}

/// For slices whose spans are too many and too unlike for the table: judges every frame here, so that a row
/// for each lot will do. Tags stay on the host.
void Uploader::pack(DeviceSlice& slice, SpanTable& table, cudaStream_t stream) {
    SliceFrames& to = slice.frames;
    std::uint64_t frames = 0;
    for (const FrameSpan& span : slice.input.spans)
        frames += span.total();
    if (frames > to.room) {
        throw std::runtime_error(
            fmt::format("a slice of {} frames: at most {} (max_slice_frames)", frames, to.room));
    }
    std::uint32_t next = 0;
    for (const Lot lot : {Lot::inside, Lot::outside, Lot::foreign}) {
        const std::uint32_t first = next;
        for (const FrameSpan& span : slice.input.spans) {
            for (std::uint64_t k = 0; k < span.total(); ++k) {
                const std::byte* const frame =
                    span.frames + k / span.count * span.stride + k % span.count * net::frame_bytes;
                if (is_tag_frame(frame)) {
                    if (lot != Lot::inside) continue;
                    slice.tags.take(net::load_frame(frame), span.tag_source,
                                    TimeGuard::of(span.time_low, span.time_high), slice.late_below,
                                    markers_.version);
                } else if (lot_of(frame, span) == lot) {
                    staging_.add(to.cells + next++, frame, net::frame_bytes, stream);
                }
            }
        }
        if (next == first) continue;
        const bool outside = lot == Lot::outside;
        // The source after the last one has no modules.
        const std::uint32_t source =
            lot == Lot::foreign ? static_cast<std::uint32_t>(sources_.size()) + 1 : 0;
        table.enter({first, next - first, next - first, source << SpanRow::gap_bits, outside ? 1U : 0U,
                     outside ? 0 : UINT64_MAX},
                    Tag::no_source);
    }
    to.count = static_cast<std::uint32_t>(frames);
    to.cell_count = next;
}

void fetch_table(const SliceFrames& frames, cudaStream_t stream) {
    if (frames.row_count > 0) launch_fetch(frames.table, frames.host_table, frames.table_bytes(), stream);
}

}  // namespace petacq::gpu::cuda

// Copies the frames of a slice to the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/slice/device_slice.hpp"
#include "gpu/cuda/transfer/upload_plan.hpp"

namespace petacq::gpu::cuda {

/// Gathers small pieces in pinned memory, so that they go to the device in few copies.
class Staging {
  public:
    explicit Staging(Memory& memory);

    /// Copies `bytes`, at most one chunk, and sends them to the device later.
    void add(net::FrameWords* to, const std::byte* from, std::size_t bytes, cudaStream_t stream);
    /// Sends what is left. Returns the number of copies since the previous send().
    std::uint32_t send(cudaStream_t stream);

  private:
    struct UploadChunk {
        std::byte* memory = nullptr;
        Event sent{cudaEventDisableTiming | cudaEventBlockingSync};
    };
    void send_chunk(cudaStream_t stream);

    std::vector<std::unique_ptr<UploadChunk>> chunks_;
    std::size_t current_ = 0;
    std::size_t used_ = 0;
    net::FrameWords* to_ = nullptr;  ///< where the current chunk begins on the device
    std::uint32_t copies_ = 0;
};

/// Allocates nothing after construction. No thread-safety.
class Uploader {
  public:
    Uploader(const PipelineOptions& options, Memory& memory);

    /// Issues the copies of the frames, asynchronous for frames in pinned memory, and writes the table of
    /// their spans on the host. Throws std::runtime_error for more frames than there is room for.
    void upload(DeviceSlice& slice, cudaStream_t stream);

  private:
    /// Frames that are packed together: those inside the time windows of their spans; those outside, which
    /// get an empty window; those with a module that is not their source's.
    enum class Lot : std::uint8_t { inside, outside, foreign };

    [[nodiscard]] bool place(DeviceSlice& slice, SpanTable& table, cudaStream_t stream);
    void copy(const FrameCopy& piece, SliceFrames& to, cudaStream_t stream);
    void pack(DeviceSlice& slice, SpanTable& table, cudaStream_t stream);
    [[nodiscard]] bool is_tag_frame(const std::byte* frame) const;
    [[nodiscard]] Lot lot_of(const std::byte* frame, const FrameSpan& span) const;

    const Input input_;
    const std::vector<net::Modules> sources_;
    ConversionTables markers_;  // nothing but the markers and the version
    UploadPlan plan_;
    Staging staging_;
};

/// Brings the table of the spans to the device.
void fetch_table(const SliceFrames& frames, cudaStream_t stream);

}  // namespace petacq::gpu::cuda

// Copies the frames of a slice to the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/slice/slot.hpp"
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
    struct Chunk {
        std::byte* memory = nullptr;
        Event sent{cudaEventDisableTiming | cudaEventBlockingSync};
    };
    void send_chunk(cudaStream_t stream);

    std::vector<std::unique_ptr<Chunk>> chunks_;
    std::size_t current_ = 0;
    std::size_t used_ = 0;
    net::FrameWords* to_ = nullptr;  ///< where the current chunk begins on the device
    std::uint32_t copies_ = 0;
};

/// Allocates nothing after construction. No thread-safety.
class Uploader {
  public:
    Uploader(const PipelineOptions& options, Memory& memory);

    /// Issues the copies of the frames to slot.cells, asynchronous for frames in pinned memory, and writes
    /// the table of the spans to slot.host_table. Throws std::runtime_error when the frames exceed the slot.
    void upload(std::span<const FrameSpan> spans, Slot& slot, cudaStream_t stream);

  private:
    [[nodiscard]] bool place(std::span<const FrameSpan> spans, Slot& slot, SpanTable& table,
                             cudaStream_t stream);
    void copy(const Piece& piece, Slot& slot, cudaStream_t stream);
    void pack(std::span<const FrameSpan> spans, Slot& slot, SpanTable& table, cudaStream_t stream);

    UploadPlan plan_;
    Staging staging_;
};

/// Brings the table of the spans to the device.
void fetch_table(const Slot& slot, cudaStream_t stream);

}  // namespace petacq::gpu::cuda

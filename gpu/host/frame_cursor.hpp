// Walks through the frames of a slice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gpu/pipeline.hpp"
#include "net/wire.hpp"

namespace petacq::gpu {

class FrameCursor {
  public:
    FrameCursor(std::span<const FrameSpan> spans, std::uint64_t skipped) : spans_(spans) {
        while (skipped > 0) {
            const std::uint64_t step = std::min<std::uint64_t>(skipped, spans_.front().count - used_);
            skipped -= step;
            advance(static_cast<std::uint32_t>(step));
        }
    }
    /// The next frames of one span, at most `most`. REQUIRES: there are some.
    FrameSpan next(std::uint64_t most) {
        while (spans_.front().count == 0)
            spans_ = spans_.subspan(1);
        FrameSpan span = spans_.front();
        span.frames += std::size_t{used_} * net::frame_bytes;
        span.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(span.count - used_, most));
        advance(span.count);
        return span;
    }

  private:
    void advance(std::uint32_t frames) {
        used_ += frames;
        if (used_ < spans_.front().count) return;
        used_ = 0;
        spans_ = spans_.subspan(1);
    }
    std::span<const FrameSpan> spans_;
    std::uint32_t used_ = 0;  // frames of the first span
};

}  // namespace petacq::gpu

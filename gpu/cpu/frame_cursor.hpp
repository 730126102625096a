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
        while (!spans_.empty() && skipped >= spans_.front().total()) {
            skipped -= spans_.front().total();
            spans_ = spans_.subspan(1);
        }
        if (skipped == 0) return;
        datagram_ = static_cast<std::uint32_t>(skipped / spans_.front().count);
        used_ = static_cast<std::uint32_t>(skipped % spans_.front().count);
    }
    /// The next frames of one datagram, at most `most`. REQUIRES: there are some.
    FrameSpan next(std::uint64_t most) {
        while (datagram_ == spans_.front().datagrams || spans_.front().count == 0) {
            spans_ = spans_.subspan(1);
            datagram_ = 0;
        }
        FrameSpan next = spans_.front().datagram(datagram_);
        next.frames += std::size_t{used_} * net::frame_bytes;
        next.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(next.count - used_, most));
        used_ += next.count;
        if (used_ == spans_.front().count) {
            used_ = 0;
            ++datagram_;
        }
        return next;
    }

  private:
    std::span<const FrameSpan> spans_;
    std::uint32_t datagram_ = 0;  // of the first span
    std::uint32_t used_ = 0;      // frames of it
};

}  // namespace petacq::gpu

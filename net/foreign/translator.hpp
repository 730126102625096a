// Datagrams of a foreign format into frames of petacqd. Everything behind the intake sees those only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "config/layout/layout.hpp"
#include "net/endpoint.hpp"
#include "net/foreign/plan.hpp"
#include "net/foreign/roll_over.hpp"
#include "net/wire.hpp"

namespace petacq::net {

/// The format of a scanner's boards, which all receivers share: its layout, and the latest time of its
/// counter.
struct ForeignFormat {
    ForeignFormat(const config::Layout& layout, const FrameCheck& frames, double tick_ps)
        : plan(layout, frames, tick_ps) {}
    const LayoutPlan plan;
    CommonCounter counter;
};

/// What a record holds of the number of lost blocks.
inline std::uint16_t saturated(std::uint64_t lost) {
    return static_cast<std::uint16_t>(std::min<std::uint64_t>(lost, UINT16_MAX));
}

/// One thread; only the constructor allocates. Wherever a datagram is read, foreign_slack_bytes behind it can
/// be read, too.
class Translator {
  public:
    explicit Translator(std::shared_ptr<ForeignFormat> format);

    /// Checks a payload and reads its header: `header.sequence` has the bits of the format, and no more.
    /// `frames` becomes the number of frames that translate() writes. Needs no state.
    Malformed parse(const std::byte* data, std::size_t size, DatagramHeader& header,
                    std::size_t& frames) const;
    /// Translates a payload for which parse() returned `none` into `frames` frames at `out`, in the same
    /// order, and completes `header.sequence`. A frame whose markers do not match becomes one with a wrong
    /// marker. Returns how many blocks (or datagrams, without blocks) the board lost here, or data of them:
    /// those that say so, and those whose numbers are missing before them.
    std::uint64_t translate(const std::byte* data, std::size_t size, Endpoint sender, std::int64_t arrival_ns,
                            DatagramHeader& header, std::byte* out);
    /// Most bytes that translate() writes for a payload of `size` bytes.
    [[nodiscard]] std::size_t max_bytes(std::size_t size) const {
        return std::min(size / plan_.frame.bytes + 1, max_foreign_frames) * frame_bytes;
    }

  private:
    /// A run of frames in a datagram: all of it, or a block.
    struct FrameStretch {
        const std::byte* frames = nullptr;
        std::size_t count = 0;
        FrameWords base{};  ///< what is the same in all of them
        Window window;
    };
    struct Last {
        std::uint64_t time = 0;  ///< counts
        bool good = false;       ///< there was a good frame
    };

    template <class Each>
    bool each_block(const std::byte* data, std::size_t size, Each each) const;
    [[nodiscard]] Window window_in(const std::byte* header, config::ByteOrder order) const;
    std::uint64_t lost_in(const LossPlan& plan, const std::byte* header, config::ByteOrder order,
                          std::uint16_t id, Endpoint sender);
    [[nodiscard]] KindsPlan::Kind kind_of(const std::byte* frame) const;
    [[nodiscard]] std::size_t used_frames(const std::byte* first, std::size_t count) const;
    [[nodiscard]] Last translate_run(const FrameStretch& piece, std::byte* out) const;
    [[nodiscard]] Last translate_kinds(const FrameStretch& piece, std::byte*& out) const;
    [[nodiscard]] Last translate_tag(const FrameStretch& piece, std::byte* out) const;
    [[nodiscard]] bool find_count(const std::byte* data, std::size_t size, std::uint64_t& count) const;
    template <config::ByteOrder Order>
    Last translate_piece(const FrameStretch& piece, std::byte* out) const;
    template <config::ByteOrder Order, bool OneWord, bool FrameUpper, bool Divided>
    Last translate_frames(const FrameStretch& piece, std::byte* out) const;

    const std::shared_ptr<ForeignFormat> format_;
    const LayoutPlan& plan_;
    SourceCounters counters_;
};

}  // namespace petacq::net

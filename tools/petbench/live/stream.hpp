// The stream of a live benchmark: one pass of frames as datagrams in memory, sent over and over. Before a
// datagram is sent it is stamped: its frame times move on with the passes, and it gets the next sequence
// number of its source. So the numbers have no gap, and the times have no step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/wire.hpp"

namespace petacq::bench {

/// The frames of a source, back to back, in any order.
struct SourceFrames {
    std::uint16_t source = 0;
    std::vector<std::byte> frames;
};

/// The number of the next datagram, for each source of a part.
using SequenceNumbers = std::vector<std::uint64_t>;

/// The datagrams of some sources. They lie back to back in the order in which they are due, so that those of
/// equal size can be sent with GSO. For one thread at a time.
class StreamPart {
  public:
    /// The datagrams of one pass.
    [[nodiscard]] std::size_t size() const { return datagrams_.size(); }
    /// Ticks since the start of the pass: the time of the last frame, or the end of its burst.
    [[nodiscard]] std::uint64_t due(std::size_t i) const { return datagrams_[i].due; }
    [[nodiscard]] std::span<const std::span<const std::byte>> payloads() const { return payloads_; }
    [[nodiscard]] std::size_t frames(std::size_t i) const;
    /// Their ids.
    [[nodiscard]] const std::vector<std::uint16_t>& sources() const { return sources_; }
    /// Gives `count` datagrams from the first on their frame times plus `ticks` (modulo 2^64), and the next
    /// numbers of their sources.
    void stamp(std::size_t first, std::size_t count, std::uint64_t ticks, SequenceNumbers& next);
    /// For each source the datagram that ends its stream.
    [[nodiscard]] std::vector<std::vector<std::byte>> ends(const SequenceNumbers& next) const;

  private:
    friend class LiveStream;
    struct SentDatagram {
        std::uint64_t due;
        std::uint64_t ticks;   // by which the times of its bytes are moved
        std::uint32_t source;  // index into sources_
    };
    net::FrameVersion version_ = net::FrameVersion::one;
    std::vector<std::uint16_t> sources_;
    std::vector<SentDatagram> datagrams_;
    std::vector<std::byte> bytes_;
    std::vector<std::span<const std::byte>> payloads_;  // [datagram] into bytes_
};

class LiveStream {
  public:
    /// Spreads the sources over `parts`, and their frames over datagrams of at most `payload` bytes. Drops
    /// the frames of a source that do not fill its last datagram, if it has others. Throws
    /// std::invalid_argument when there are fewer sources than parts. Each source sends together what it has
    /// gathered in `burst` ticks.
    LiveStream(net::FrameVersion version, std::vector<SourceFrames> sources, std::size_t payload,
               unsigned parts, std::uint64_t burst = 1);

    [[nodiscard]] std::vector<StreamPart>& parts() { return parts_; }
    [[nodiscard]] std::uint64_t frames() const { return frames_; }  ///< in a pass
    [[nodiscard]] std::uint64_t first() const { return first_; }    ///< frame time
    [[nodiscard]] std::uint64_t period() const { return period_; }  ///< ticks in a pass
    [[nodiscard]] std::size_t sources() const { return sources_; }

  private:
    std::vector<StreamPart> parts_;
    std::uint64_t frames_ = 0;
    std::uint64_t first_ = UINT64_MAX;
    std::uint64_t period_ = 0;
    std::size_t sources_ = 0;
};

}  // namespace petacq::bench

// Messages into datagrams: the part of the receiver that looks at what has been received. Internal to net/.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "net/batch.hpp"
#include "net/foreign/translator.hpp"
#include "net/receive/admission.hpp"
#include "net/receive/frame_filter.hpp"
#include "net/receive/receiver.hpp"
#include "net/receive/unknown_senders.hpp"

namespace petacq::net {

/// Splits messages into datagrams, checks each, and records those that are accepted. One thread at a time.
class Splitter {
  public:
    /// A received message: one datagram, or several that the kernel coalesced.
    struct Message {
        std::byte* data;
        std::size_t size;
        std::size_t segment;  ///< size of its datagrams; the last may be shorter
        std::uint32_t address;
        std::uint16_t port;
        std::int64_t arrival_ns;
    };

    Splitter(const ReceiverOptions& options, ReceiverCounters& counters);

    /// Records the datagrams of a message that lies in `into`; without a batch, counts them as dropped.
    /// Returns the end of the last recorded datagram, relative to m.data; 0 if none was recorded.
    std::size_t split(const Message& m, Batch* into);
    /// The datagrams are of a foreign format: they go through translate() and not through split().
    [[nodiscard]] bool translates() const { return translator_.has_value(); }
    /// Datagrams have sequence numbers.
    [[nodiscard]] bool sequenced() const { return admission_.header_size() != 0; }
    /// Translates the datagram at `at` of a message, and records it in `into`, which has room for a record
    /// and for room_for() bytes; without a batch, counts it as dropped. Returns the end of the datagram.
    /// Behind the message, foreign_slack_bytes can be read.
    std::size_t translate(const Message& m, std::size_t at, Batch* into);
    /// Bytes that a foreign datagram of `size` bytes may take.
    [[nodiscard]] std::size_t room_for(std::size_t size) const {
        return std::max(translator_->max_bytes(size), frame_bytes);
    }
    /// Bytes of the datagrams since the latest publish_counts().
    [[nodiscard]] std::size_t bytes() const { return tally_.bytes; }
    /// Adds what has been counted to the counters.
    void publish_counts();
    [[nodiscard]] UnknownSenders& unknown_senders() { return unknown_senders_; }

  private:
    struct Tally {
        std::uint64_t received = 0, delivered = 0, malformed = 0, unknown = 0, dropped = 0;
        std::uint64_t frames = 0, frames_dropped = 0, bytes = 0;
    };
    // A datagram that was accepted. Another one of that sender whose header begins with the same bytes (magic
    // number, version, flags, source) is accepted, too.
    struct Judged {
        Endpoint sender;
        std::uint64_t begin = 0;  // of the header
        std::uint16_t source = 0;
        std::uint8_t flags = 0;
        const Modules* modules = nullptr;  // of the source; nullptr: there is no such datagram
        // Its train in the group that is being recorded, and the end of that.
        std::uint64_t group = 0;
        std::uint32_t train = 0;
        std::uint64_t number = 0;
        std::uint64_t first_time = 0;
        std::uint64_t last_time = 0;
    };

    Judged& judged(Endpoint sender, const std::byte* data);
    std::size_t take_alike(const Message& m, std::size_t at, Batch* into);
    std::size_t take_one(const Message& m, std::size_t at, Batch* into);
    static Datagram& add_record(const Message& m, Batch& into, const std::byte* data, std::size_t size);

    Admission admission_;
    std::optional<Translator> translator_;
    FrameTest test_;
    UnknownSenders unknown_senders_;
    bool keep_rejected_;
    ReceiverCounters& counters_;
    Tally tally_;
    std::uint64_t group_ = 0;                       // the group recorded last
    std::array<Judged, Group::max_trains> judged_;  // the latest of the sources that share an entry
};

}  // namespace petacq::net

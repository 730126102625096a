// The ledger of everything since the daemon started.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/acquisition/pipeline_feed.hpp"
#include "daemon/acquisition/receiver_totals.hpp"
#include "daemon/run/ledger.hpp"
#include "daemon/tracking/source_table.hpp"
#include "gpu/pipeline.hpp"
#include "net/batch.hpp"
#include "net/wire.hpp"

namespace petacq::daemon {

/// Combines the counts of the acquisition thread with those of receivers and sources. No thread-safety,
/// except that the receivers count meanwhile.
class Account {
  public:
    /// How to read the receivers' counters. `quick`: each for itself, so that identities may not close.
    /// `one_moment`: all of one moment, for the start and the end of a run; may wait for a receiver.
    enum class ReadingMode { quick, one_moment };

    /// The counters outlive this object. Without receivers, as in a replay, the datagrams that a receiver
    /// would count are counted when they are added.
    Account(std::vector<const net::ReceiverCounters*> receivers, net::Framing framing);

    /// A datagram or a train that a receiver has published has reached the acquisition thread.
    void add_datagram(const net::Datagram& datagram) {
        if (datagram.admitted == net::Admitted::yes) datagrams_ += datagram.datagrams;
        board_lost_ += datagram.lost;
        if (receivers_.empty()) count_here(datagram);
    }
    /// Frames of an accepted datagram.
    void add_frames(std::uint64_t frames) { frames_ += frames; }
    /// An accepted datagram seems to have come before.
    void add_suspected_duplicate() { ++duplicates_suspected_; }
    /// A slice that the pipeline has processed.
    void add(const gpu::SliceResult& result);

    /// `frames_under_way`: accepted and not through the pipeline. `waiting`: in the pipeline.
    [[nodiscard]] Ledger total(ReadingMode reading, const TrackerTotals& sources,
                               std::uint64_t frames_under_way, const Waiting& waiting) const;
    /// The latest of each channel and kind, in that order.
    [[nodiscard]] std::vector<gpu::Tag> latest_tags() const;
    /// Coincidences, saved singles and tags found. Triples come with their coincidences.
    [[nodiscard]] std::uint64_t records_found() const { return records_in(counted_); }
    static std::uint64_t records_in(const Ledger& ledger) {
        return ledger.pairs.prompts_found + ledger.pairs.delayeds_found + ledger.saved_singles.found +
               ledger.tags.found;
    }
    /// UDP payload.
    [[nodiscard]] std::uint64_t bytes_received() const;

  private:
    static constexpr std::size_t tag_channels = 16;
    static constexpr std::size_t tag_kinds = 256;

    void count_here(const net::Datagram& datagram);

    const std::vector<const net::ReceiverCounters*> receivers_;
    Ledger counted_;  ///< results of the pipeline
    ReceiverTotals counted_here_;
    std::uint64_t datagrams_ = 0;  ///< accepted by the receivers
    std::uint64_t board_lost_ = 0;
    std::uint64_t duplicates_suspected_ = 0;
    std::uint64_t frames_ = 0;
    /// [channel][kind]
    std::vector<std::optional<gpu::Tag>> latest_tags_ =
        std::vector<std::optional<gpu::Tag>>(tag_channels * tag_kinds);
};

}  // namespace petacq::daemon

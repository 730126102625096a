// The sources, and who they are: which slot belongs to which sender.
//
// A sequenced source is identified by its id, a bare one by the address and port of its sender. Expected
// sources have the first slots, in the order of their list, and keep them. Once max_sources senders have been
// heard, another one takes the slot of a source that has never been proven, or that has been silent for ten
// timeouts. What the source counted stays in the totals.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "daemon/tracking/counters.hpp"
#include "daemon/tracking/source.hpp"
#include "daemon/tracking/tracker_options.hpp"
#include "net/batch.hpp"
#include "net/endpoint.hpp"

namespace petacq::daemon {

/// Sums over the sources. `too_many_sources` counts datagrams of sources beyond max_sources.
struct TrackerTotals {
    PETACQ_TRACKER_COUNTERS(PETACQ_COUNTER_MEMBER)
    std::uint64_t clock_jumps = 0;
    std::uint64_t jumped_datagrams = 0;
};

class SourceTable {
  public:
    static constexpr std::size_t max_sources = 4096;
    static constexpr std::size_t nobody = static_cast<std::size_t>(-1);

    /// `options` must outlive this object. Throws std::invalid_argument for more than max_sources expected
    /// sources or one named twice.
    explicit SourceTable(const TrackerOptions& options);

    /// The slot of the sender of a datagram; nobody if it has none.
    [[nodiscard]] std::size_t slot_of(const net::Datagram& datagram) const {
        if (options_.framing == net::Framing::sequenced) {
            const std::uint16_t entry = index_of_id_[datagram.source];
            return entry == 0 ? nobody : entry - 1U;
        }
        const std::uint16_t number = index_of_sender_.find({datagram.address, datagram.port});
        return number == net::SenderTable::none ? nobody : number;
    }
    /// Gives the sender a slot if it has none. nobody: none is free, and the datagram is counted as one too
    /// many.
    std::size_t take_slot(const net::Datagram& datagram, std::int64_t now_ns);

    [[nodiscard]] Source& operator[](std::size_t slot) { return sources_[slot]; }
    /// Until another sender gets a slot.
    [[nodiscard]] std::span<Source> all() { return sources_; }
    [[nodiscard]] std::span<const Source> all() const { return sources_; }
    [[nodiscard]] std::span<const Source> expected() const { return all().first(expected_); }
    /// Sources whose slots others have taken.
    [[nodiscard]] std::uint64_t replaced() const { return replaced_; }
    [[nodiscard]] TrackerTotals totals() const;

  private:
    std::size_t free_slot(std::int64_t now_ns);
    [[nodiscard]] bool may_be_replaced(const Source& source, std::int64_t now_ns) const;
    void vacate(std::size_t index);
    void enter(std::size_t index, const net::Datagram& first);

    const TrackerOptions& options_;
    std::vector<Source> sources_;
    std::size_t expected_ = 0;                ///< the first of sources_
    std::size_t next_slot_ = 0;               ///< where the search for a slot to reuse continues
    std::vector<std::uint16_t> index_of_id_;  ///< sequenced: [id] index + 1; 0: none
    net::SenderTable index_of_sender_;        ///< bare
    TrackerTotals without_slot_;              ///< of the sources replaced, and of datagrams one too many
    std::uint64_t replaced_ = 0;
};

}  // namespace petacq::daemon

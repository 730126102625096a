// What one reader of the tap gets: every N-th record of one kind, through a buffer that the acquisition
// thread fills and the reader empties.
#pragma once

#include <array>
#include <atomic>
#include <boost/lockfree/spsc_queue.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "daemon/listmode/format.hpp"
#include "net/base/counter.hpp"

namespace petacq::daemon {

/// A run, as the readers see it.
struct TapRun {
    TapRun(std::uint64_t run_number, std::string run_id) : number(run_number), id(std::move(run_id)) {}

    const std::uint64_t number;  ///< 1, 2, ... since the daemon started
    const std::string id;
    /// Set when no more of its records will come; a reader that sees it also sees all of them.
    std::atomic<bool> ended{false};
};

/// Chosen records that follow each other.
struct TapPiece {
    std::shared_ptr<const TapRun> run;  ///< nullptr: there is none
    std::uint64_t first_record = 0;     ///< number of the first one in its run
    std::uint64_t records = 0;
    std::uint64_t dropped = 0;  ///< by the subscription, before this piece
};

/// One thread offers (the acquisition), one other thread takes (the reader). Neither waits for the other.
class TapSubscription {
  public:
    static constexpr std::size_t buffer_bytes = 8U << 20;
    /// Most bytes that take() gives at once.
    static constexpr std::size_t piece_bytes = 131'072;

    /// Chooses the records of the kind (coincidences, triples, singles or tags) whose numbers are multiples
    /// of `prescale`, at least 1. Allocates all memory.
    TapSubscription(RecordKind kind, std::uint64_t prescale);
    TapSubscription(const TapSubscription&) = delete;
    TapSubscription& operator=(const TapSubscription&) = delete;
    ~TapSubscription() = default;

    [[nodiscard]] RecordKind kind() const { return kind_; }
    [[nodiscard]] std::uint64_t prescale() const { return prescale_; }
    [[nodiscard]] std::uint32_t record_bytes() const { return record_bytes_; }

    /// The acquisition: records of the kind, the first of which has the number `first` in the run. What finds
    /// no room is dropped. Returns how many records that were. Does not allocate.
    std::uint64_t offer(const std::shared_ptr<const TapRun>& run, std::uint64_t first,
                        std::span<const std::byte> records);

    /// The reader: moves the next records to the start of `into`, which has piece_bytes.
    TapPiece take(std::vector<std::byte>& into);
    /// Any thread: chosen records that were dropped.
    [[nodiscard]] std::uint64_t dropped() const { return dropped_.value(); }

  private:
    /// Each record is one, two or three of them.
    using Unit = std::array<std::byte, 16>;
    static constexpr std::size_t max_pieces = 4096;

    void push(std::span<const std::byte> records, std::uint64_t position, std::uint64_t count);

    const RecordKind kind_;
    const std::uint64_t prescale_;
    const std::uint32_t record_bytes_;
    boost::lockfree::spsc_queue<Unit> data_{buffer_bytes / sizeof(Unit)};
    /// A piece is in it when all its data are in data_.
    boost::lockfree::spsc_queue<TapPiece> pieces_{max_pieces};
    TapPiece next_;  ///< the reader: what is left of the latest piece out of pieces_
    net::Counter dropped_;
};

}  // namespace petacq::daemon

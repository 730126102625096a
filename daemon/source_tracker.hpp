// All sources of the detector: which datagrams are used, within what times, and how far the watermark may go.
//
// The acquisition thread shows every datagram to observe() and asks for the watermark() once per slice.
// Nothing here knows a clock: host time is an argument (steady clock, ns), so replay and tests are
// deterministic.
//
// A sequenced source is known by its id, a bare one by its sender's address and port. Per source there is
// sequence accounting (sequence_tracker.hpp) and a time guard (time_guard.hpp).
//
// Reference: the detector time that the sources agree on, with which each is compared. Active are the sources
// with a believable frame within source_timeout, less those that have ended. Each active source has a vote,
// except while it is `unresolved`: moved by a jump, or by a step longer than max_lag, to a time that the
// others contradict by more than max_lag; or new, and contradicted by more than max_jump; or ahead of them.
// The reference is the largest progress for which at least half of the votes are at most max_lag behind it.
// So one source of two that lags does not hold the other back, and one of three or more that runs away is
// found out by the others. When fewer than half of the active sources have a vote (a common reset of the
// boards), all of them vote, provided they are at least half of those heard lately; else a single jumped
// source that comes back first after a pause of all would take the detector with it.
//
//   more than max_lag behind the reference    lagging: does not hold the watermark; its frames come out late
//   more than max_lag ahead of it             leading: unresolved, its frames are time jumps until the
//                                             reference gets there
//   within max_lag                            resolved
//
// Watermark = the smallest progress of the sources that hold it, less max_disorder, less max_offset; it never
// goes back. A source holds it from its first datagram on while it is active and neither lagging nor
// unresolved. One that has ended with no number missing in the window lets go at once, one that has fallen
// silent after source_timeout. Before its progress is settled it holds the watermark where it is. A source
// that appears is never late with its first frames as long as it is less than max_disorder behind the others.
// With expected ids the watermark stays 0 until all of them have been seen, or source_timeout has passed
// since the first frame of any.
//
// When no source holds, nothing more is to be waited for: the watermark goes past the newest frame by
// max_offset + flush_reach + 1, so that everything received is decided.
//
// Limits. Of two sources, one that runs ahead in steps each below max_lag makes the other lag. After a common
// reset to an earlier time every frame is below the watermark until restart_watermark(); status says
// behind_watermark. max_lag must exceed what one datagram spans.
//
// No thread-safety: one owner, the acquisition thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "daemon/sequence_tracker.hpp"
#include "daemon/time_guard.hpp"
#include "net/batch.hpp"
#include "net/wire.hpp"

namespace petacq::daemon {

struct TrackerOptions {
    net::Framing framing = net::Framing::sequenced;
    std::vector<std::uint16_t> expected;  ///< sequenced: ids to wait for; empty: none in particular
    std::uint64_t max_disorder = 0;       ///< ticks
    std::uint64_t max_lag = 0;            ///< ticks
    std::uint64_t max_jump = 0;           ///< ticks
    std::uint32_t jump_confirmations = 3;
    std::int64_t source_timeout_ns = 0;
    double ticks_per_ns = 0;        ///< of the detector's clock; 0: not known
    std::uint64_t max_offset = 0;   ///< ticks: largest magnitude of a time offset of the calibration
    std::uint64_t flush_reach = 0;  ///< ticks: how far past the newest single decides all (window + delay)
};

/// What to do with a datagram. Frames with times outside [time_low, time_high] are time jumps; with time_low
/// above time_high all of them are.
struct Verdict {
    bool use = true;  ///< false: discard the frames (a duplicate, or a source too many)
    std::uint64_t time_low = 0;
    std::uint64_t time_high = std::numeric_limits<std::uint64_t>::max();
};

enum class SourceState : std::uint8_t {
    active,
    silent,   ///< no believable frame for source_timeout, or none ever
    lagging,  ///< behind the reference by more than max_lag
    leading,  ///< ahead of it by more than max_lag: its frames are time jumps
    ended,    ///< end of stream seen
    jumping,  ///< its latest datagram was a jump that is not confirmed
};
/// The word, as above.
const char* name_of(SourceState state);

struct SourceStatus {
    std::uint16_t id = 0;       ///< sequenced framing
    std::uint32_t address = 0;  ///< host byte order, of the latest datagram; 0: none yet
    std::uint16_t port = 0;
    SourceState state = SourceState::silent;
    std::uint64_t datagrams = 0;            ///< accepted
    std::uint64_t frames = 0;               ///< in accepted datagrams
    std::optional<std::uint64_t> lost;      ///< absent: cannot be known (bare framing)
    SequenceCounts sequence;                ///< all zero with bare framing
    std::uint64_t jumped_datagrams = 0;     ///< accepted, but all frames time jumps
    std::uint64_t clock_jumps = 0;          ///< confirmed
    std::uint64_t progress = 0;             ///< ticks; 0: not known
    std::optional<std::int64_t> skew;       ///< ticks, progress less what the reference is now
    std::optional<std::int64_t> last_seen;  ///< host time of the latest datagram, ns
};

struct TrackerStatus {
    std::vector<SourceStatus> sources;       ///< expected ones first, then as they appeared
    std::optional<std::uint64_t> reference;  ///< as of the latest watermark()
    std::uint64_t watermark = 0;
    std::optional<std::size_t> holding;  ///< position in `sources` of the one that holds the watermark back
    bool behind_watermark = false;       ///< the sources agree on a time below the watermark
};

/// Sums over the sources. All but `lost` only grow.
struct TrackerTotals {
    std::uint64_t accepted = 0;
    std::uint64_t lost = 0;  ///< 0 with bare framing, where it is not known
    std::uint64_t duplicate = 0;
    std::uint64_t reordered = 0;
    std::uint64_t restarted = 0;
    std::uint64_t stray = 0;
    std::uint64_t end_of_stream = 0;
    std::uint64_t too_many_sources = 0;  ///< datagrams of sources beyond max_sources
    std::uint64_t clock_jumps = 0;
    std::uint64_t jumped_datagrams = 0;
};

class SourceTracker {
  public:
    static constexpr std::size_t max_sources = 4096;

    /// Throws std::invalid_argument for more than max_sources expected ids or one named twice.
    explicit SourceTracker(TrackerOptions options);

    /// Accounts for one datagram. Allocates only for a source's first one.
    Verdict observe(const net::Datagram& datagram, std::int64_t now_ns);

    /// No frame below it (after time offset) is waited for any more. Monotone. `latest_pending_time`: the
    /// newest undecided single of the pipeline, 0 for none.
    std::uint64_t watermark(std::int64_t now_ns, std::uint64_t latest_pending_time);

    /// Forgets the watermark and who was ahead: between runs, with the pipeline reset. Counters, and where
    /// each source stands, stay.
    void restart_watermark();

    [[nodiscard]] TrackerTotals totals() const;
    [[nodiscard]] TrackerStatus status(std::int64_t now_ns) const;

  private:
    struct Source {
        explicit Source(const TrackerOptions& options) : time(options.max_jump, options.jump_confirmations) {}

        TimeGuard time;
        std::optional<std::int64_t> frame_ns;  ///< host time of the latest believable frame
        std::optional<std::uint64_t> newest;   ///< newest believable frame time since restart_watermark
        bool unresolved = false;
        std::uint16_t id = 0;
        std::uint16_t port = 0;
        std::uint32_t address = 0;
        std::optional<std::int64_t> seen_ns;  ///< host time of the latest datagram
        std::uint64_t datagrams = 0;
        std::uint64_t frames = 0;
        std::uint64_t jumped_datagrams = 0;
        std::uint64_t clock_jumps = 0;
        SequenceTracker sequence;
    };
    static constexpr std::size_t nobody = static_cast<std::size_t>(-1);

    std::size_t find(const net::Datagram& datagram);
    std::size_t add_source();
    Verdict guard(std::size_t index, const net::Datagram& datagram, std::int64_t now_ns);

    // source_watermark.cpp
    [[nodiscard]] bool active(const Source& source, std::int64_t now_ns) const;
    [[nodiscard]] bool holds(const Source& source, std::int64_t now_ns) const;
    [[nodiscard]] bool lagging(const Source& source) const;
    [[nodiscard]] std::optional<std::uint64_t> agreed_time(std::int64_t now_ns, std::size_t without) const;
    void update_reference(std::int64_t now_ns);
    void reconsider(std::size_t index, std::int64_t now_ns, std::uint64_t tolerance);
    [[nodiscard]] bool waiting_for_expected(std::int64_t now_ns) const;
    [[nodiscard]] std::optional<std::uint64_t> newest_frame() const;
    [[nodiscard]] SourceState state_of(const Source& source, std::int64_t now_ns) const;

    TrackerOptions options_;
    std::vector<Source> sources_;
    std::vector<std::uint16_t> index_of_id_;  ///< sequenced: [id] index + 1; 0: none
    struct Sender {
        std::uint64_t key = 0;    ///< address << 16 | port
        std::uint16_t index = 0;  ///< + 1; 0: free
    };
    std::vector<Sender> index_of_sender_;  ///< bare: open addressing, at most half full

    std::optional<std::int64_t> first_frame_ns_;  ///< host time of the first frame of anybody
    std::optional<std::uint64_t> reference_;      ///< as of updated_ns_
    std::optional<std::int64_t> updated_ns_;
    /// Reference + max_lag; stays when there is no reference any more.
    std::uint64_t leading_above_ = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t watermark_ = 0;
    std::uint64_t end_of_stream_ = 0;
    std::uint64_t too_many_sources_ = 0;
    mutable std::vector<std::uint64_t> votes_;  ///< scratch of agreed_time
};

}  // namespace petacq::daemon

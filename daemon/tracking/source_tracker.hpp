// Tracks all sources of the detector: decides which datagrams are used, which frame times are believable, and
// how far the watermark may advance.
//
// The acquisition thread passes every datagram to observe(), and calls watermark() once per slice. Host time
// is an argument (steady clock, ns), so that replay and tests are deterministic.
//
// A sequenced source is identified by its id, a bare one by the address and port of its sender. Each source
// has sequence accounting (sequence_tracker.hpp) and a time guard (time_guard.hpp).
//
// Reference. The reference is the detector time on which the sources agree; each source is compared with it.
// A source is active if it sent a believable frame within source_timeout and has not ended. Each active
// source has a vote, unless it is `unresolved`:
//   - a jump, or a step longer than max_lag, moved it to a time that the others contradict by over max_lag;
//   - it is new, and the others contradict it by more than max_jump;
//   - it is ahead of the reference by more than max_lag.
// The reference is the largest progress for which at least half of the votes are at most max_lag behind it.
// So a lagging source does not hold back the only other one, and three or more sources detect the one that
// runs away. If fewer than half of the active sources have a vote (after a common reset of the boards), all
// of them vote, provided that they are at least half of the sources heard recently. Without this condition, a
// single jumped source that is the first to return after a common pause would move the reference.
//
//   more than max_lag behind the reference    lagging: does not hold the watermark; its frames are late
//   more than max_lag ahead of it             leading: unresolved; its frames are time jumps until the
//                                             reference catches up
//   within max_lag                            resolved
//
// Watermark. The watermark is the smallest progress of the sources that hold it, less max_disorder and
// max_offset; it never decreases. A source holds it from its first datagram on, while it is active and
// neither lagging nor unresolved. A source that has ended, with no number missing in the window, releases it
// at once; a silent source releases it after source_timeout. Until the progress of a source is settled, the
// watermark does not move. The first frames of a source are never late if it is less than max_disorder behind
// the others. With expected ids, the watermark stays 0 until all of them have appeared, or until
// source_timeout after the first frame of any source.
//
// If no source holds the watermark, no frame is waited for: the watermark moves past the newest frame by
// max_offset + flush_reach + 1, so that every received frame is decided.
//
// Limits. If one of two sources runs ahead in steps below max_lag, the other one lags. After a common reset
// to an earlier time every frame is below the watermark until restart_watermark(); the status then says
// behind_watermark. max_lag must exceed the time that one datagram spans.
//
// Not thread-safe: only the acquisition thread uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "daemon/tracking/sequence_tracker.hpp"
#include "daemon/tracking/time_guard.hpp"
#include "net/batch.hpp"
#include "net/wire.hpp"

namespace petacq::daemon {

struct TrackerOptions {
    net::Framing framing = net::Framing::sequenced;
    std::vector<std::uint16_t> expected;  ///< sequenced: ids to wait for; empty: any
    std::uint64_t max_disorder = 0;       ///< ticks
    std::uint64_t max_lag = 0;            ///< ticks
    std::uint64_t max_jump = 0;           ///< ticks
    std::uint32_t jump_confirmations = 3;
    std::int64_t source_timeout_ns = 0;
    double ticks_per_ns = 0;       ///< rate of the detector's clock; 0: unknown
    std::uint64_t max_offset = 0;  ///< ticks: largest magnitude of a time offset of the calibration
    std::uint64_t flush_reach =
        0;  ///< ticks past the newest single after which all singles are decided (window + delay)
};

/// The verdict on a datagram. Frames outside [time_low, time_high] are time jumps; if time_low is above
/// time_high, all frames are.
struct Verdict {
    bool use = true;  ///< false: discard the frames (a duplicate, or too many sources)
    std::uint64_t time_low = 0;
    std::uint64_t time_high = std::numeric_limits<std::uint64_t>::max();
};

enum class SourceState : std::uint8_t {
    active,
    silent,   ///< no believable frame within source_timeout, or none at all
    lagging,  ///< behind the reference by more than max_lag
    leading,  ///< ahead of the reference by more than max_lag: its frames are time jumps
    ended,    ///< the end of the stream has arrived
    jumping,  ///< the latest datagram was a jump that is not confirmed
};
/// The name of the enumerator.
const char* name_of(SourceState state);

struct SourceStatus {
    std::uint16_t id = 0;       ///< sequenced framing
    std::uint32_t address = 0;  ///< host byte order; sender of the latest datagram; 0: none
    std::uint16_t port = 0;
    SourceState state = SourceState::silent;
    std::uint64_t datagrams = 0;            ///< accepted
    std::uint64_t frames = 0;               ///< in accepted datagrams
    std::optional<std::uint64_t> lost;      ///< absent: unknown (bare framing)
    SequenceCounts sequence;                ///< all zero with bare framing
    std::uint64_t jumped_datagrams = 0;     ///< accepted datagrams whose frames are all time jumps
    std::uint64_t clock_jumps = 0;          ///< confirmed
    std::uint64_t progress = 0;             ///< ticks; 0: unknown
    std::optional<std::int64_t> skew;       ///< ticks; progress less the current reference
    std::optional<std::int64_t> last_seen;  ///< host time of the latest datagram, ns
};

struct TrackerStatus {
    std::vector<SourceStatus> sources;  ///< expected sources first, then the others in order of appearance
    std::optional<std::uint64_t> reference;  ///< as of the latest watermark()
    std::uint64_t watermark = 0;
    std::optional<std::size_t> holding;  ///< index in `sources` of the source that holds back the watermark
    bool behind_watermark = false;       ///< the sources agree on a time below the watermark
};

/// Sums over the sources. All but `lost` only grow.
struct TrackerTotals {
    std::uint64_t accepted = 0;
    std::uint64_t lost = 0;  ///< 0 with bare framing, where it is unknown
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

    /// Frames below it (after time offset) are not waited for. Never decreases. `latest_pending_time`: time
    /// of the newest undecided single in the pipeline, 0 for none.
    std::uint64_t watermark(std::int64_t now_ns, std::uint64_t latest_pending_time);

    /// Forgets the watermark and which sources were ahead; for use between runs, when the pipeline is reset.
    /// Counters and the progress of each source stay.
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

    std::optional<std::int64_t> first_frame_ns_;  ///< host time of the first frame of any source
    std::optional<std::uint64_t> reference_;      ///< as of updated_ns_
    std::optional<std::int64_t> updated_ns_;
    /// Reference + max_lag; keeps its value while there is no reference.
    std::uint64_t leading_above_ = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t watermark_ = 0;
    std::uint64_t end_of_stream_ = 0;
    std::uint64_t too_many_sources_ = 0;
    mutable std::vector<std::uint64_t> votes_;  ///< scratch of agreed_time
};

}  // namespace petacq::daemon

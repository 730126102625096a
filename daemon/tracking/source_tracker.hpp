// Tracks all sources of the detector: decides which datagrams are used, which frame times are believable, and
// how far the watermark may advance.
//
// The acquisition thread passes every datagram to observe(), and calls watermark() once per slice. Each
// source has a slot (source_table.hpp), sequence accounting (sequence_tracker.hpp) and a clock
// (time_guard.hpp). From the clocks follows detector time (detector_time.hpp), and from that the watermark
// (watermark.hpp). Datagrams without valid frames say nothing about time. Host time is an argument (ns), so
// that decisions depend on the data and their times of arrival only.
//
// Not thread-safe: only the acquisition thread uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "daemon/tracking/clock_rate.hpp"
#include "daemon/tracking/detector_time.hpp"
#include "daemon/tracking/number_pattern.hpp"
#include "daemon/tracking/sequence_tracker.hpp"
#include "daemon/tracking/source_table.hpp"
#include "daemon/tracking/verdict.hpp"
#include "daemon/tracking/watermark.hpp"
#include "net/batch.hpp"

namespace petacq::daemon {

enum class SourceState : std::uint8_t {
    active,
    silent,   ///< no believable frame within source_timeout, or none at all
    lagging,  ///< behind the reference by more than max_lag
    leading,  ///< ahead of the reference by more than max_lag: its frames are time jumps
    ended,    ///< the end of the stream has arrived, or another source has taken its place
    jumping,  ///< the latest datagram was a jump that is not confirmed
};
/// The name of the enumerator.
const char* name_of(SourceState state);

struct SourceStatus : SourceCounts {
    SourceState state = SourceState::silent;
    std::optional<std::uint64_t> lost;            ///< absent: unknown (bare framing, or `numbers` says why)
    std::uint64_t unnumbered = 0;                 ///< accepted while the numbers said nothing
    NumberPattern latest_numbers;                 ///< what was wrong with them last
    NumberPattern numbers;                        ///< what is wrong with its sequence numbers
    SequenceCounts sequence;                      ///< all zero with bare framing
    std::optional<ClockRate::Wrong> rate;         ///< while it is wrong
    std::optional<ClockRate::Wrong> latest_rate;  ///< how it was wrong last
    std::uint64_t wrong_seconds = 0;              ///< in which it was wrong
    std::uint64_t progress = 0;                   ///< ticks; 0: unknown
    std::optional<std::int64_t> skew;             ///< ticks; progress less the current reference
};

struct TrackerStatus {
    std::vector<SourceStatus> sources;       ///< expected sources first; each keeps its position
    std::optional<std::uint64_t> reference;  ///< as of the latest watermark()
    std::size_t expected = 0;                ///< how many of them
    std::uint64_t watermark = 0;
    std::optional<std::size_t> holding;  ///< index in `sources` of the source that holds back the watermark
    bool behind_watermark = false;       ///< the sources agree on a time below the watermark
    std::uint64_t replaced = 0;          ///< sources whose slots others have taken
};

class SourceTracker {
  public:
    /// Throws std::invalid_argument for more than max_sources expected sources or one named twice.
    explicit SourceTracker(TrackerOptions options);
    SourceTracker(SourceTracker&&) = delete;

    /// Accounts for one datagram. Allocates only for a source's first one.
    Verdict observe(const net::Datagram& datagram, std::int64_t now_ns);
    /// Accounts for a group at once, if each of its datagrams simply follows the one of its source before:
    /// then `verdicts` has that on the datagrams of each train. In any other case it does nothing and returns
    /// false; observe() takes them one by one.
    bool observe_group(const net::Group& group, std::int64_t now_ns, std::vector<Verdict>& verdicts);

    [[nodiscard]] const DetectorTime& time() const { return time_; }

    /// Renews an open verdict on a datagram.
    void reconsider(const net::Datagram& datagram, Verdict& verdict) {
        time_.consider(sources_[verdict.source],
                       {datagram.first_time, datagram.last_time, datagram.timed_frames}, verdict);
    }
    /// A datagram whose verdict was open stays refused.
    void refuse_open(std::uint32_t source) { ++sources_[source].jumped_datagrams; }

    /// Decides on detector time and moves the watermark (Watermark::advance).
    std::uint64_t watermark(std::int64_t now_ns, std::uint64_t latest_pending_time) {
        time_.decide(now_ns);
        return watermark_.advance(now_ns, latest_pending_time);
    }
    /// Detector time continues where the sources agree; the watermark starts again. REQUIRES:
    /// time().went_back().
    void follow_reset(std::int64_t now_ns) {
        watermark_.restart();
        time_.follow_reset(now_ns);
    }
    /// Forgets the watermark, the members and all clocks: time begins anew. Counters stay.
    void restart_watermark(std::int64_t now_ns) {
        watermark_.restart();
        time_.restart(now_ns);
    }

    // Of Watermark.
    [[nodiscard]] bool held() const { return watermark_.held(); }
    [[nodiscard]] std::uint64_t watermark_without_slow(std::int64_t now_ns,
                                                       const std::function<bool(std::uint64_t)>& fits) const {
        return watermark_.without_slow(now_ns, fits);
    }
    void set_max_offset(std::uint64_t ticks) { watermark_.set_max_offset(ticks); }

    // Of DetectorTime.
    void note_earlier(std::uint32_t source, std::uint64_t time) { time_.note_earlier(source, time); }
    void believe_until(std::uint64_t ticks) { time_.believe_until(ticks); }
    /// Begins detector time with the sources that are proven now; two need not agree.
    void establish_now(std::int64_t now_ns) { time_.establish(now_ns, true); }

    /// A run starts: what is missing now was lost before it (sequence_tracker.hpp).
    void mark();
    /// Detector time starts again: if no source is sending, a stream that has been sent before is not a copy
    /// from now on.
    void allow_repetition(std::int64_t now_ns);

    [[nodiscard]] TrackerTotals totals() const { return sources_.totals(); }
    [[nodiscard]] TrackerStatus status(std::int64_t now_ns) const;

  private:
    struct OfTrain {
        Source* source;
        std::uint64_t next;  ///< number
    };

    static void watch_numbers(Source& source, const NumberedDatagram& datagram, Verdict& verdict);
    void watch_rate(Source& source, std::int64_t now_ns) const;
    void name_source(std::size_t index, const net::Datagram& datagram, Verdict& verdict) const;
    [[nodiscard]] SourceState state_of(const Source& source, std::int64_t now_ns) const;

    const TrackerOptions options_;
    SourceTable sources_;
    DetectorTime time_;
    Watermark watermark_;
    std::uint64_t period_ = 0;  ///< part of the content of datagrams
    std::vector<OfTrain> of_train_;
};

}  // namespace petacq::daemon

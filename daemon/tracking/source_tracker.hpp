// Tracks all sources of the detector: decides which datagrams are used, which frame times are believable, and
// how far the watermark may advance.
//
// The acquisition thread passes every datagram to observe(), and calls watermark() once per slice. Host time
// is an argument (ns), so that decisions depend on the data and their times of arrival only.
//
// A sequenced source is identified by its id, a bare one by the address and port of its sender. Each source
// has sequence accounting (sequence_tracker.hpp) and a clock (time_guard.hpp). Datagrams without valid frames
// say nothing about time. Once max_sources senders have been heard, another one takes the slot of a source
// that has never been proven, or that has been silent for ten timeouts (source_slots.cpp). Expected sources
// keep their slots.
//
// The rules. A source counts only when it is proven (time_guard.hpp). It is active if it has sent a
// believable frame within source_timeout and has not ended. Sources agree if their progress differs by at
// most max_lag.
//
// 1. Detector time begins when two proven sources agree. They are the first members. A source that is proven
//    alone begins it if the list of expected sources names no other; else it waits for company,
//    source_timeout without a list and ten times as long with one. Until then the watermark is 0 and no frame
//    is rejected.
// 2. The reference is the median of the progress of the members that are active and in place: at most max_lag
//    before or after the reference. With fewer than three of them, beside others that are silent or
//    elsewhere, it does not go back, and goes ahead no faster than host time: one bad source cannot take it
//    along while the others pause.
// 3. A proven source in place becomes a member, and stays one, silent or not, until time begins anew. A bare
//    board that restarts may send from another port: a proven source takes the place of a member of the same
//    address that has carried one of its modules, has been silent for source_timeout, and was not heard after
//    the source appeared. A source takes the place of one member at most.
// 4. Time moves elsewhere only if the clocks of more than half of all members have moved there and agree.
//    Ahead, they take the reference along. Back, this is a common reset: time_went_back() says so when no
//    member in place is active, or after source_timeout. The caller stops the run and calls follow_reset().
// 5. The time of a single member is provisional: two other proven sources that agree elsewhere replace it.
//    This is no common reset.
// 6. Frames are believed from max_jump below the reference to max_jump above it; those of a member in place
//    from max_lag and max_jump below it, those of other sources from max_jump below their progress, if that
//    is less. All others are time jumps, and so is every frame of a proven source more than max_lag ahead of
//    the reference ("leading"). A source more than max_lag behind is "lagging": its frames are late.
//
// Watermark. The watermark is the smallest progress of the members that are active and in place, less
// max_disorder and max_offset; it never decreases. A member that has ended, with no number missing in the
// window, releases it at once; a silent member after source_timeout. The first frames of a source are never
// late if they are less than max_disorder behind a source that holds the watermark. With expected ids, the
// watermark stays 0 until all of them are proven, or until source_timeout after the first one.
//
// If no member holds the watermark, no frame is waited for: the watermark moves past the newest frame by
// max_offset + flush_reach + 1, so that every received frame is decided, but not past the present time less
// max_disorder, so that sources that return from a pause are in time. A source that appears when all others
// have ended begins there: earlier frames of it are late.
//
// Limits. Of two sources that contradict each other, one with a wrong clock cannot be known: the one behind
// lags. Without a list, a bad source that is alone for source_timeout before the boards begin has moved the
// watermark; and many made-up ids that send believable frames from the beginning are members like the boards,
// and so are bare senders at the address of a silent board that send frames of its modules.
// max_lag must exceed the time that one datagram spans.
//
// Not thread-safe: only the acquisition thread uses it.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/tracking/clock_rate.hpp"
#include "daemon/tracking/number_pattern.hpp"
#include "daemon/tracking/sequence_tracker.hpp"
#include "daemon/tracking/time_guard.hpp"
#include "net/batch.hpp"
#include "net/endpoint.hpp"
#include "net/wire.hpp"

namespace petacq::daemon {

struct TrackerOptions {
    net::Framing framing = net::Framing::sequenced;
    std::vector<std::uint16_t> expected;          ///< sequenced: ids to wait for; empty: any
    std::vector<net::Endpoint> expected_senders;  ///< bare: likewise
    std::uint64_t max_disorder = 0;               ///< ticks
    std::uint64_t max_lag = 0;                    ///< ticks
    std::uint64_t max_jump = 0;                   ///< ticks
    std::uint32_t jump_confirmations = 3;
    std::int64_t source_timeout_ns = 0;
    double ticks_per_ns = 0;       ///< rate of the detector's clock; 0: unknown
    std::uint64_t max_offset = 0;  ///< ticks: largest magnitude of a time offset of the calibration
    std::uint64_t flush_reach =
        0;  ///< ticks past the newest single after which all singles are decided (window + delay)
};

/// In tags of a source that is not listed, with bare framing.
inline constexpr std::uint16_t no_tag_source = 0xFFFF;

/// The verdict on a datagram. Frames outside [time_low, time_high] are time jumps; if time_low is above
/// time_high, all frames are.
struct Verdict {
    std::uint64_t time_low = 0;
    std::uint64_t time_high = std::numeric_limits<std::uint64_t>::max();
    std::uint32_t source = 0;  ///< position of the source in the status
    /// What names the source in its tags: the id, or the position in the list of senders, if it is there.
    std::uint16_t tag_source = no_tag_source;
    bool use = true;  ///< false: discard the frames (a copy, or too many sources)
    /// Datagrams that this one shows to be missing. Negative: they were thought missing.
    std::int64_t lost = 0;
    bool loss_known = true;  ///< false: its number says nothing

    /// All frames are time jumps.
    void refuse_all() {
        time_low = 1;
        time_high = 0;
    }
};

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

struct SourceStatus {
    std::uint16_t id = 0;       ///< sequenced framing
    std::uint32_t address = 0;  ///< host byte order; sender of the latest datagram; 0: none
    std::uint16_t port = 0;
    SourceState state = SourceState::silent;
    std::uint64_t datagrams = 0;                  ///< accepted
    std::uint64_t frames = 0;                     ///< in accepted datagrams
    std::optional<std::uint64_t> lost;            ///< absent: unknown (bare framing, or `numbers` says why)
    std::uint64_t invalid_frames = 0;             ///< in datagrams without any valid frame
    std::uint64_t unnumbered = 0;                 ///< accepted while the numbers said nothing
    NumberPattern latest_numbers;                 ///< what was wrong with them last
    NumberPattern numbers;                        ///< what is wrong with its sequence numbers
    SequenceCounts sequence;                      ///< all zero with bare framing
    std::uint64_t jumped_datagrams = 0;           ///< accepted datagrams whose frames are all time jumps
    std::uint64_t clock_jumps = 0;                ///< confirmed
    std::uint64_t steps_back = 0;                 ///< confirmed, by less than max_jump
    std::optional<ClockRate::Wrong> rate;         ///< while it is wrong
    std::optional<ClockRate::Wrong> latest_rate;  ///< how it was wrong last
    std::uint64_t wrong_seconds = 0;              ///< in which it was wrong
    std::uint64_t progress = 0;                   ///< ticks; 0: unknown
    std::optional<std::int64_t> skew;             ///< ticks; progress less the current reference
    std::optional<std::int64_t> first_seen;       ///< host time of the first datagram, ns
    std::optional<std::int64_t> last_seen;        ///< host time of the latest datagram, ns
    std::bitset<256> bdms;                        ///< modules in the first and last frames of its datagrams
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

/// Sums over the sources. All but `lost` only grow.
struct TrackerTotals {
    std::uint64_t accepted = 0;
    std::uint64_t lost = 0;        ///< 0 with bare framing, where it is unknown
    std::uint64_t unnumbered = 0;  ///< accepted while their numbers said nothing
    std::uint64_t recovered = 0;
    std::uint64_t duplicate = 0;
    std::uint64_t repeated = 0;
    std::uint64_t reordered = 0;
    std::uint64_t restarted = 0;
    std::uint64_t stray = 0;
    std::uint64_t end_of_stream = 0;
    std::uint64_t too_many_sources = 0;  ///< datagrams of sources beyond max_sources
    std::uint64_t clock_jumps = 0;
    std::uint64_t steps_back = 0;
    std::uint64_t jumped_datagrams = 0;
};

class SourceTracker {
  public:
    static constexpr std::size_t max_sources = 4096;

    /// Throws std::invalid_argument for more than max_sources expected sources or one named twice.
    explicit SourceTracker(TrackerOptions options);

    /// Accounts for one datagram. Allocates only for a source's first one.
    Verdict observe(const net::Datagram& datagram, std::int64_t now_ns);
    /// Accounts for a group at once, if each of its datagrams simply follows the one of its source before:
    /// then `verdicts` has that on the datagrams of each train. In any other case it does nothing and returns
    /// false; observe() takes them one by one.
    bool observe_group(const net::Group& group, std::int64_t now_ns, std::vector<Verdict>& verdicts);
    /// The datagram observed last has a valid frame of this time, which is neither its first nor its last.
    void note_earlier(std::uint32_t source, std::uint64_t time);

    /// Frames below it (after time offset) are not waited for. Never decreases. `latest_pending_time`: time
    /// of the newest undecided single in the pipeline, 0 for none.
    std::uint64_t watermark(std::int64_t now_ns, std::uint64_t latest_pending_time);

    /// Whether a source, or the wait for one, held the watermark in the latest call of watermark(): then it
    /// did not depend on `latest_pending_time`.
    [[nodiscard]] bool held() const { return held_; }

    /// The watermark if slow sources are given up to save memory. `fits` says whether what waits fits with a
    /// watermark. First those are given up that have been silent for the longest; then those that lag behind
    /// the reference, and at last the disorder of all. Never past the reference of the others: what lies
    /// beyond it may come from a single source whose clock is wrong. Changes nothing.
    [[nodiscard]] std::uint64_t watermark_without_slow(std::int64_t now_ns,
                                                       const std::function<bool(std::uint64_t)>& fits) const;
    /// Later frames are time jumps until the next call: there is no memory for them. UINT64_MAX: no bound.
    void believe_until(std::uint64_t ticks) {
        believed_until_ = ticks;
        believed_high_ = std::min(believed_high_, ticks);
    }

    /// Whether detector time has begun. Before, verdicts believe every frame, and the watermark is 0.
    [[nodiscard]] bool established() const { return reference_.has_value(); }
    /// Begins detector time with the sources that are proven now; two need not agree. Does nothing if none
    /// is.
    void establish_now(std::int64_t now_ns);
    /// The frame times that are believed of a source in place.
    [[nodiscard]] Verdict believed_times() const;
    /// The frame times that a source supports by itself: near those of its datagrams, if all of these agree
    /// or have proven it; with `unproven` false, only if they have.
    [[nodiscard]] Verdict own_times(std::uint32_t source, bool unproven = true) const;
    /// The frame times that are believed of a source whose frames have waited for detector time to begin. It
    /// may have begun long after the first frames of a member.
    [[nodiscard]] Verdict held_times(std::uint32_t source) const;
    /// The earliest and the newest believed frame of all members since time began; UINT64_MAX and 0: none, or
    /// the newest frame has the time 0.
    /// With three members or more, earliest() ignores a single one that is more than max_disorder before all
    /// others.
    [[nodiscard]] std::uint64_t earliest() const;
    [[nodiscard]] std::uint64_t newest() const { return newest_; }
    /// The earliest believed frame of any member; UINT64_MAX: none. Later than before if the time before was
    /// that of a source that is no member any more.
    [[nodiscard]] std::uint64_t first_of_members() const;
    /// Whether some member supports the present time: it is active and in place. The time of one source alone
    /// does not count if more are expected.
    [[nodiscard]] bool supported(std::int64_t now_ns) const;

    /// Whether no member supports it, but some source is active elsewhere.
    [[nodiscard]] bool deserted(std::int64_t now_ns) const;

    enum class Back : std::uint8_t {
        no,
        common_reset,  ///< the boards were reset together
        replaced,      ///< the time before was that of a single source
    };
    /// Whether the sources agree on a time before the reference. Changes in observe() and watermark() only.
    [[nodiscard]] Back time_went_back() const { return back_; }
    /// Detector time goes on where they agree; the watermark starts again. REQUIRES: time_went_back().
    void follow_reset(std::int64_t now_ns);
    /// Forgets the watermark, the members and all clocks: time begins anew. Counters stay.
    void restart_watermark();
    /// Another calibration is in use. The watermark stays where it is until the sources allow more.
    void set_max_offset(std::uint64_t ticks) { options_.max_offset = ticks; }

    /// A run starts: what is missing now was lost before it (sequence_tracker.hpp).
    void mark();
    /// Detector time starts again: if no source is sending, a stream that has been sent before is not a copy
    /// from now on.
    void allow_repetition(std::int64_t now_ns);

    [[nodiscard]] TrackerTotals totals() const;
    [[nodiscard]] TrackerStatus status(std::int64_t now_ns) const;

  private:
    struct TickRange {
        std::uint64_t earliest = UINT64_MAX;
        std::uint64_t newest = 0;
        void add(std::uint64_t time) {
            earliest = std::min(earliest, time);
            newest = std::max(newest, time);
        }
    };
    struct Source {
        explicit Source(const TrackerOptions& options)
            : time({options.max_jump, options.max_disorder, options.jump_confirmations}) {}

        TimeGuard time;
        std::optional<std::int64_t> frame_ns;  ///< host time of the latest believable frame; only if proven
        /// Frame times since the clock began or moved, and of a row that may move it.
        TickRange times, row_times;
        std::uint64_t first = UINT64_MAX;  ///< earliest believed frame of a member
        bool member = false;
        bool moved = false;      ///< the clock has moved since the source was last in place
        bool believed = false;   ///< has been proven since it has its slot
        bool successor = false;  ///< has taken the place of a member
        bool succeeded = false;  ///< another source has taken its place
        std::uint16_t id = 0;
        std::uint16_t port = 0;
        std::uint32_t address = 0;
        std::optional<std::int64_t> first_seen_ns;  ///< host time of the first datagram
        std::optional<std::int64_t> seen_ns;        ///< host time of the latest datagram
        std::bitset<256> bdms;
        std::uint64_t datagrams = 0;
        std::uint64_t frames = 0;
        std::uint64_t invalid_frames = 0;  ///< in datagrams without any valid frame
        std::uint64_t jumped_datagrams = 0;
        std::uint64_t clock_jumps = 0;
        std::uint64_t steps_back = 0;
        SequenceTracker sequence;
        NumberWatch watch;
        ClockRate rate;
    };
    /// Sources that agree: their progress lies from low to high.
    struct Group {
        std::size_t size = 0;
        std::uint64_t low = 0;
        std::uint64_t median = 0;
        std::uint64_t high = 0;
    };
    /// So many members in place cannot be led away by one of them.
    static constexpr std::size_t safe_votes = 3;
    static constexpr std::size_t nobody = static_cast<std::size_t>(-1);

    // source_slots.cpp
    void expect();
    [[nodiscard]] std::size_t slot_of(const net::Datagram& datagram) const;
    std::size_t find(const net::Datagram& datagram, std::int64_t now_ns);
    std::size_t take_slot(std::int64_t now_ns);
    [[nodiscard]] bool may_be_replaced(const Source& source, std::int64_t now_ns) const;
    void vacate(std::size_t index);
    void enter(std::size_t index, const net::Datagram& first);

    static void watch_numbers(Source& source, const NumberedDatagram& datagram, Verdict& verdict);
    static void add(const Source& source, TrackerTotals& totals);
    // Parts of observe().
    [[nodiscard]] inline bool goes_on(const Source& source, const DatagramTimes& first,
                                      const DatagramTimes& end) const;
    inline void go_on(Source& source, const DatagramTimes& first, const DatagramTimes& end,
                      std::int64_t now_ns);
    void believe_member(Verdict& verdict) const;
    void watch_rate(Source& source, std::int64_t now_ns) const;
    void name_source(std::size_t index, const net::Datagram& datagram, Verdict& verdict) const;
    inline std::uint64_t guard(Source& source, const DatagramTimes& times, std::int64_t now_ns);
    inline void judge(Source& source, const DatagramTimes& times, std::uint64_t believed, Verdict& verdict);
    void decide_if_due(std::int64_t now_ns);
    [[nodiscard]] std::uint64_t ticks_in(std::int64_t ns) const;

    // detector_time.cpp
    [[nodiscard]] bool active(const Source& source, std::int64_t now_ns) const;
    /// The time of a single member goes wherever the member goes, but not back.
    [[nodiscard]] bool in_place(const Source& source) const {
        if (!reference_ || !source.time.proven()) return false;
        const std::uint64_t progress = source.time.progress();
        return progress >= place_low_ && (progress <= place_high_ || (source.member && members_ == 1));
    }
    [[nodiscard]] bool votes(const Source& source, std::int64_t now_ns) const {
        return source.member && active(source, now_ns) && in_place(source);
    }
    void decide(std::int64_t now_ns);
    void establish(std::int64_t now_ns, bool alone);
    void begin_time(const Group& group, std::int64_t now_ns);
    void set_reference(std::uint64_t reference, std::int64_t now_ns);
    void set_place(std::int64_t now_ns);
    void admit(Source& source);
    void admit_members(std::int64_t now_ns);
    void find_successor(std::int64_t now_ns);
    void advance_reference(std::int64_t now_ns);
    void look_elsewhere(std::int64_t now_ns);
    [[nodiscard]] Group agreeing() const;
    [[nodiscard]] std::uint64_t host_reference(std::int64_t now_ns) const;
    [[nodiscard]] std::optional<std::uint64_t> median_vote(std::int64_t now_ns) const;
    [[nodiscard]] std::int64_t heard_at(std::uint64_t progress, std::int64_t now_ns) const;

    // source_watermark.cpp
    [[nodiscard]] bool waiting_for_expected(std::int64_t now_ns) const;
    [[nodiscard]] std::uint64_t reference_of(std::span<const Source* const> sources,
                                             std::int64_t now_ns) const;
    [[nodiscard]] std::uint64_t flushed(std::int64_t now_ns, std::uint64_t latest_pending_time) const;
    [[nodiscard]] SourceState state_of(const Source& source, std::int64_t now_ns) const;

    TrackerOptions options_;
    std::vector<Source> sources_;
    std::size_t expected_ = 0;                ///< the first of sources_
    std::size_t next_slot_ = 0;               ///< where the search for a slot to reuse continues
    std::vector<std::uint16_t> index_of_id_;  ///< sequenced: [id] index + 1; 0: none
    net::SenderTable index_of_sender_;        ///< bare
    TrackerTotals replaced_;                  ///< of the sources whose slots others have taken
    std::uint64_t replacements_ = 0;          ///< number of these sources

    std::optional<std::int64_t> first_proven_ns_;  ///< since time began anew
    std::optional<std::uint64_t> reference_;       ///< present when time has begun
    std::size_t members_ = 0;                      ///< also those whose slots others have taken
    std::size_t next_silent_ = 0;                  ///< where the search for a silent member continues
    /// A reference that no single source can have moved, and its host time.
    std::uint64_t base_ = 0;
    std::int64_t base_ns_ = 0;
    std::uint64_t place_low_ = 0;  ///< progress in place
    std::uint64_t place_high_ = 0;
    std::uint64_t believed_high_ = 0;  ///< frame times that are believed
    std::uint64_t newest_ = 0;         ///< believed frame of a member
    Back back_ = Back::no;
    Group back_group_;  ///< the sources that agree on a time before the reference
    std::optional<std::int64_t> back_since_ns_;
    std::int64_t heard_ns_ = 0;  ///< host time of the latest believable frame of a member in place
    bool changed_ = false;       ///< since the latest decision
    std::int64_t decided_ns_ = 0;
    std::size_t undecided_ = 0;  ///< datagrams since the latest decision
    std::uint64_t watermark_ = 0;
    std::uint64_t period_ = 0;  ///< part of the content of datagrams
    bool held_ = true;
    std::uint64_t believed_until_ = UINT64_MAX;
    std::uint64_t end_of_stream_ = 0;
    std::uint64_t too_many_sources_ = 0;
    mutable std::vector<std::uint64_t> scratch_;  ///< progress of some sources
    mutable std::vector<const Source*> by_silence_;
    struct OfTrain {
        Source* source;
        std::uint64_t next;  ///< number
    };
    std::vector<OfTrain> of_train_;
};

}  // namespace petacq::daemon

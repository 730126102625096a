// Detector time: which time it is, by the clocks of the sources, and which frame times are believable.
// docs/design/time.md has the rules, by their numbers, and their limits.
//
// A source counts only when it is proven (time_guard.hpp). Members are the sources that have agreed on the
// time; the reference is the median of their progress. Times are in ticks, host time is an argument in ns.
// max_lag must exceed the time that one datagram spans.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "daemon/tracking/saturate.hpp"
#include "daemon/tracking/source_table.hpp"
#include "daemon/tracking/time_guard.hpp"
#include "daemon/tracking/verdict.hpp"

namespace petacq::daemon {

class DetectorTime {
  public:
    /// Both must outlive this object.
    DetectorTime(const TrackerOptions& options, SourceTable& sources)
        : options_(options), sources_(sources) {}

    /// Accounts for the times of a datagram, and says in the verdict which are believed.
    void observe(Source& source, const DatagramTimes& times, std::int64_t now_ns, Verdict& verdict) {
        if (goes_on(source, times, times)) {
            go_on(source, times, times, 1, now_ns);
            believe_member(verdict);
        } else {
            ++undecided_;
            judge(source, times, follow(source, times, now_ns), verdict);
        }
    }
    /// The usual case: a member in place continues where it was, with a datagram or a train that has
    /// `first` and `end` at its ends.
    [[nodiscard]] bool goes_on(const Source& source, const DatagramTimes& first,
                               const DatagramTimes& end) const {
        const bool in_place = place_low_ <= first.first && end.first <= place_high_;
        return reference_ && !changed_ && source.member && in_place && end.last <= believed_high_ &&
               source.time.goes_on(first, end);
    }
    /// Accounts for a train of `datagrams` datagrams. REQUIRES: goes_on().
    void go_on(Source& source, const DatagramTimes& first, const DatagramTimes& end, std::size_t datagrams,
               std::int64_t now_ns) {
        undecided_ += datagrams;
        source.time.go_on(end);
        source.frame_ns = heard_ns_ = now_ns;
        source.times.add(first.first);
        source.times.add(end.last);
        source.first = std::min(source.first, first.first);
        newest_ = std::max(newest_, end.last);
    }
    /// The same for all datagrams of a member in place, wherever trains begin and end.
    void believe_member(Verdict& verdict) const {
        verdict.time_low = subtract_or_zero(place_low_, options_.max_jump);
        verdict.time_high = believed_high_;
    }
    /// Says in the verdict which times of a datagram of the source are believed as of now.
    void consider(const Source& source, const DatagramTimes& times, Verdict& verdict) const;
    /// Host time of the latest decision.
    [[nodiscard]] std::int64_t decided_ns() const { return decided_ns_; }
    /// The datagram of the source observed last has a valid frame of this time, which is neither its first
    /// nor its last.
    void note_earlier(std::uint32_t source, std::uint64_t time);

    /// Decides on the reference and the members.
    void decide(std::int64_t now_ns);
    /// The same when something has changed or some time has passed.
    void decide_if_due(std::int64_t now_ns);
    /// Begins detector time if that is due by rule 1; `alone`: with the sources that are proven now, though
    /// no two agree. Does nothing if it has begun, or if none is proven.
    void establish(std::int64_t now_ns, bool alone);
    /// Forgets the members and all clocks: time begins anew.
    void restart(std::int64_t now_ns);

    /// Present once time has begun. As of the latest decision.
    [[nodiscard]] const std::optional<std::uint64_t>& reference() const { return reference_; }
    [[nodiscard]] bool established() const { return reference_.has_value(); }
    /// Host time at which the first source was proven since time began anew.
    [[nodiscard]] const std::optional<std::int64_t>& first_proven_ns() const { return first_proven_ns_; }
    /// Host time of the latest believable frame of a member.
    [[nodiscard]] std::int64_t heard_ns() const { return heard_ns_; }
    /// The later one of the reference and the time that it should be by the clock of the host. REQUIRES:
    /// established().
    [[nodiscard]] std::uint64_t present(std::int64_t now_ns) const;
    /// The median of the votes at present; absent: none.
    [[nodiscard]] std::optional<std::uint64_t> median(std::int64_t now_ns) const;
    /// The reference by rule 2, if only these sources voted and it had no value yet. REQUIRES: one at least.
    [[nodiscard]] std::uint64_t reference_of(std::span<const Source* const> sources,
                                             std::int64_t now_ns) const;

    [[nodiscard]] bool active(const Source& source, std::int64_t now_ns) const;
    /// The time of a single member goes wherever the member goes, but not back.
    [[nodiscard]] bool in_place(const Source& source) const {
        if (!reference_ || !source.time.proven()) return false;
        const std::uint64_t progress = source.time.progress();
        return progress >= place_low_ && (progress <= place_high_ || (source.member && members_ == 1));
    }
    /// Whether it is a member, active and in place.
    [[nodiscard]] bool votes(const Source& source, std::int64_t now_ns) const {
        return source.member && active(source, now_ns) && in_place(source);
    }
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
    /// Whether the sources agree on a time before the reference: said when no member in place is active, or
    /// after source_timeout. The caller then calls follow_reset(). Decisions change it.
    [[nodiscard]] Back went_back() const { return back_; }
    /// Time continues where they agree. REQUIRES: went_back().
    void follow_reset(std::int64_t now_ns);

    /// The frame times that are believed of a source in place.
    [[nodiscard]] Verdict believed_times() const;
    /// The frame times that a source supports by itself: near those of its datagrams, if all of these agree
    /// or have proven it; with `unproven` false, only if they have.
    [[nodiscard]] Verdict own_times(std::uint32_t source, bool unproven = true) const;
    /// The frame times that are believed of a source whose frames have waited for time to begin. It may have
    /// begun long after the first frames of a member.
    [[nodiscard]] Verdict held_times(std::uint32_t source) const;
    /// Later frames are time jumps until the next call: there is no memory for them. UINT64_MAX: no bound.
    void believe_until(std::uint64_t ticks) {
        believed_until_ = ticks;
        believed_high_ = std::min(believed_high_, ticks);
    }

    /// The earliest and the newest believed frame of all members since time began; UINT64_MAX and 0: none, or
    /// the newest frame has the time 0. With three members or more, earliest() ignores a single one that is
    /// more than max_disorder before all others.
    [[nodiscard]] std::uint64_t earliest() const;
    [[nodiscard]] std::uint64_t newest() const { return newest_; }
    /// Singles later than this come from wild frames, or from a board far ahead of the others: they neither
    /// move the watermark nor prolong a run.
    [[nodiscard]] std::uint64_t end_of_disorder() const { return add_or_max(newest_, options_.max_disorder); }
    /// The earliest believed frame of any member; UINT64_MAX: none. Later than before if the time before was
    /// that of a source that is no member any more.
    [[nodiscard]] std::uint64_t first_of_members() const;
    /// Data begin at `from`, as far as frames since time last started again say. Boards that were sending
    /// then, each in datagrams of its own, had sent frames of later times before. Returns the end of these,
    /// in the time of singles, which is at most `max_offset` from that of frames; `from` if there are none.
    [[nodiscard]] std::uint64_t end_of_time_before(std::uint64_t from, std::uint64_t max_offset) const;

  private:
    /// Sources that agree: their progress lies from low to high.
    struct AgreeingSources {
        std::size_t size = 0;
        std::uint64_t low = 0;
        std::uint64_t median = 0;
        std::uint64_t high = 0;
    };

    std::uint64_t follow(Source& source, const DatagramTimes& times, std::int64_t now_ns);
    void judge(Source& source, const DatagramTimes& times, std::uint64_t believed, Verdict& verdict);
    void begin_time(const AgreeingSources& group, std::int64_t now_ns);
    void set_reference(std::uint64_t reference, std::int64_t now_ns);
    void set_place(std::int64_t now_ns);
    void admit(Source& source);
    void admit_members(std::int64_t now_ns);
    void find_successor(std::int64_t now_ns);
    void advance_reference(std::int64_t now_ns);
    void look_elsewhere(std::int64_t now_ns);
    [[nodiscard]] std::uint64_t ticks_in(std::int64_t ns) const;
    [[nodiscard]] std::uint64_t host_reference(std::int64_t now_ns) const;
    [[nodiscard]] std::int64_t heard_at(std::uint64_t progress, std::int64_t now_ns) const;
    [[nodiscard]] bool safe(std::size_t votes) const;
    [[nodiscard]] bool any_votes(std::int64_t now_ns) const;
    [[nodiscard]] std::uint64_t scratch_median() const;
    template <class Takes>
    void gather(Takes takes) const;
    template <class Takes>
    [[nodiscard]] AgreeingSources agreeing(Takes takes) const;

    const TrackerOptions& options_;
    SourceTable& sources_;
    std::optional<std::int64_t> first_proven_ns_;
    std::optional<std::uint64_t> reference_;
    std::size_t members_ = 0;      ///< also those whose slots others have taken
    std::size_t next_silent_ = 0;  ///< where the search for a silent member continues
    /// A reference that no single source can have moved, and its host time.
    std::uint64_t base_ = 0;
    std::int64_t base_ns_ = 0;
    std::uint64_t place_low_ = 0;  ///< progress in place
    std::uint64_t place_high_ = 0;
    std::uint64_t believed_high_ = 0;  ///< frame times that are believed
    std::uint64_t believed_until_ = UINT64_MAX;
    std::uint64_t newest_ = 0;  ///< believed frame of a member
    Back back_ = Back::no;
    AgreeingSources back_group_;  ///< the sources that agree on a time before the reference
    std::optional<std::int64_t> back_since_ns_;
    std::int64_t heard_ns_ = 0;
    bool changed_ = false;  ///< since the latest decision
    std::int64_t decided_ns_ = 0;
    std::size_t undecided_ = 0;                   ///< datagrams since the latest decision
    mutable std::vector<std::uint64_t> scratch_;  ///< progress of some sources
};

}  // namespace petacq::daemon

// The watermark: frames below it, after time offset, are not waited for.
//
// It is the smallest progress of the members that are active and in place (detector_time.hpp), less
// max_disorder and max_offset; it never decreases. A member that has ended, with no number missing in the
// window, releases it at once; a silent member after source_timeout. The first frames of a source are never
// late if they are less than max_disorder behind a source that holds the watermark. It is 0 until detector
// time begins; with expected ids, until all of them are proven, or until source_timeout after the first one.
//
// If no member holds the watermark, no frame is waited for: the watermark moves past the newest frame by
// max_offset + flush_reach + 1, so that every received frame is decided, except wild ones and those of a
// board far ahead. It does not pass the present time less max_disorder, so that sources that return from a
// pause are in time. A source that appears when all others have ended begins there: earlier frames of it are
// late.
//
// Limits. Without a list, a bad source that is alone for source_timeout before the boards begin has moved the
// watermark.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "daemon/tracking/detector_time.hpp"
#include "daemon/tracking/saturate.hpp"
#include "daemon/tracking/source_table.hpp"

namespace petacq::daemon {

class Watermark {
  public:
    /// All must outlive this object.
    Watermark(const TrackerOptions& options, const SourceTable& sources, const DetectorTime& time)
        : options_(options), sources_(sources), time_(time), max_offset_(options.max_offset) {}

    /// Moves it as far as the latest decision about detector time allows. `latest_pending_time`: time of the
    /// newest undecided single in the pipeline, 0 for none.
    std::uint64_t advance(std::int64_t now_ns, std::uint64_t latest_pending_time);
    [[nodiscard]] std::uint64_t ticks() const { return ticks_; }
    /// Whether a source, or the wait for one, held it in the latest call of advance(): then it did not depend
    /// on `latest_pending_time`.
    [[nodiscard]] bool held() const { return held_; }

    /// The watermark if slow sources are given up to save memory. `fits` says whether what waits fits with a
    /// watermark. First those are given up that have been silent for the longest; then those that lag behind
    /// the reference, and at last the disorder of all. Never past the reference of the others: what lies
    /// beyond it may come from a single source whose clock is wrong. Changes nothing.
    [[nodiscard]] std::uint64_t without_slow(std::int64_t now_ns,
                                             const std::function<bool(std::uint64_t)>& fits) const;

    /// Detector time begins anew, or continues elsewhere.
    void restart() { ticks_ = 0; }
    /// Another calibration is in use. The watermark stays where it is until the sources allow more.
    void set_max_offset(std::uint64_t ticks) { max_offset_ = ticks; }

  private:
    /// Frames below it are not on their way when the slowest source has got to `ticks`.
    [[nodiscard]] std::uint64_t behind(std::uint64_t ticks) const {
        return subtract_or_zero(subtract_or_zero(ticks, options_.max_disorder), max_offset_);
    }
    [[nodiscard]] bool waiting_for_expected(std::int64_t now_ns) const;
    [[nodiscard]] std::uint64_t flushed(std::int64_t now_ns, std::uint64_t latest_pending_time) const;

    const TrackerOptions& options_;
    const SourceTable& sources_;
    const DetectorTime& time_;
    std::uint64_t max_offset_;
    std::uint64_t ticks_ = 0;
    bool held_ = true;
    mutable std::vector<const Source*> by_silence_;
};

}  // namespace petacq::daemon

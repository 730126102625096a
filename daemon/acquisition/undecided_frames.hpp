// How many frames wait for the watermark.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace petacq::daemon {

/// Counts the frames of accepted datagrams by time, in parts of a second of detector time. It knows without
/// the pipeline how much waits there at most, so that what is decided to bound the memory depends on the data
/// alone. Energy window and crystals are not considered, so fewer singles wait. No thread-safety: a value.
class UndecidedFrames {
  public:
    /// `part`: ticks; frames within it become decided together.
    explicit UndecidedFrames(std::uint64_t part) : part_(std::max<std::uint64_t>(part, 1)) {}

    /// Frames of datagrams. `time`: of the last frame.
    void add(std::uint64_t time, std::uint64_t frames) {
        total_ += frames;
        const std::uint64_t number = time / part_;
        if (latest_ < parts_.size() && parts_[latest_].number == number) {
            parts_[latest_].frames += frames;
            return;
        }
        const auto at = std::lower_bound(parts_.begin(), parts_.end(), number,
                                         [](const TimeBin& p, std::uint64_t n) { return p.number < n; });
        latest_ = static_cast<std::size_t>(at - parts_.begin());
        if (at != parts_.end() && at->number == number) {
            at->frames += frames;
        } else {
            parts_.insert(at, {number, frames});
        }
    }
    /// Frames below the watermark are decided.
    void advance(std::uint64_t watermark) {
        std::size_t decided = 0;
        for (; decided < parts_.size() && is_below(parts_[decided], watermark); ++decided)
            total_ -= parts_[decided].frames;
        if (decided == 0) return;
        parts_.erase(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(decided));
        latest_ = parts_.size();
    }
    /// How many would wait with this watermark.
    [[nodiscard]] std::uint64_t count_from(std::uint64_t watermark) const {
        std::uint64_t waiting = total_;
        for (std::size_t i = 0; i < parts_.size() && is_below(parts_[i], watermark); ++i)
            waiting -= parts_[i].frames;
        return waiting;
    }
    /// Up to which time not more than `most` wait with this watermark. UINT64_MAX: all.
    [[nodiscard]] std::uint64_t fitting_end(std::uint64_t watermark, std::uint64_t most) const {
        std::uint64_t waiting = 0;
        for (const TimeBin& part : parts_) {
            if (is_below(part, watermark)) continue;
            waiting += part.frames;
            if (waiting > most) return std::max(part.number * part_, watermark);
        }
        return UINT64_MAX;
    }
    void clear() {
        parts_.clear();
        total_ = 0;
        latest_ = 0;
    }

  private:
    struct TimeBin {
        std::uint64_t number = 0;
        std::uint64_t frames = 0;
    };
    [[nodiscard]] bool is_below(const TimeBin& part, std::uint64_t watermark) const {
        return part.number < watermark / part_;
    }

    std::uint64_t part_;
    std::vector<TimeBin> parts_;  ///< in order; none is empty
    std::size_t latest_ = 0;      ///< the one that was added to last
    std::uint64_t total_ = 0;
};

}  // namespace petacq::daemon

// For which share of a second the data of each module arrived: what boards that were silent and datagrams
// that were lost leave of it. The figures of a second depend only on the data in it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "gpu/tick_range.hpp"
#include "net/modules.hpp"

namespace petacq::daemon {

/// Datagrams of a source that follow each other without a gap. Times are ticks.
struct HeardDatagrams {
    std::uint32_t source = 0;      ///< Verdict::source
    std::uint64_t first_time = 0;  ///< of its frames, as far as its first and last one tell
    std::uint64_t last_time = 0;
    std::uint32_t datagrams = 1;
    std::uint32_t frames = 0;  ///< in all of them
    std::int64_t lost = 0;     ///< datagrams that it shows to be missing; negative: they were thought missing
    std::uint16_t first_bdm = 0;
    std::uint16_t last_bdm = 0;
    bool hits = true;  ///< the modules say something
};

/// One thread at a time.
///
/// Lost datagrams count where the time of their source has a gap. A gap without lost datagrams is silence if
/// it is longer than `pause` and than twenty times the source's mean distance of frames: a source of a low
/// rate is not silent. A module of several sources has the share of the best of them.
class BoardPresence {
  public:
    /// `second`, `pause`: ticks. `listed`: the modules of each source that is expected, in the tracker's
    /// order.
    BoardPresence(std::uint64_t second, std::uint64_t pause, std::uint32_t bdm_count,
                  std::span<const std::vector<std::uint32_t>> listed);

    /// A datagram from before detector time is known, whose times may be wild.
    void hold(std::uint32_t source, std::uint64_t first_time, std::uint64_t last_time) {
        if (source >= sources_.size()) sources_.resize(source + 1);
        BoardTimes& s = sources_[source];
        s.held_begin = std::min({s.held_begin, first_time, last_time});
        s.held_end = std::max({s.held_end, first_time, last_time});
        ++s.held;
    }
    /// REQUIRES: their last times lie in the same second.
    void add(const HeardDatagrams& d) {
        if (d.source >= sources_.size()) sources_.resize(d.source + 1);
        BoardTimes& source = sources_[d.source];
        const std::uint64_t begin = std::min(d.first_time, d.last_time);
        const std::uint64_t end = std::max(d.first_time, d.last_time);
        if (d.hits) note_modules(d.source, d.first_bdm, d.last_bdm);
        if (!source.heard || d.lost != 0 || begin > source.end + pause_) [[unlikely]]
            add_gap(d.source, begin, d.lost);
        if (end > source.end) {
            source.ticks += end - source.end;
            source.frames += d.frames;
            if (source.frames > averaged_frames) {
                source.ticks /= 2;
                source.frames /= 2;
            }
            source.end = end;
        }
        counts(end, d.source).received += d.datagrams;
    }
    /// Modules in another hit of the source.
    void note_modules(std::uint32_t source, std::uint16_t first_bdm, std::uint16_t last_bdm) {
        if (source < listed_) return;
        sources_[source].modules.set(first_bdm).set(last_bdm);
    }
    /// The share of each module, 0 to 1, in the next range, which is not before those taken so far. NaN:
    /// nobody has heard of the module.
    void take(gpu::TickRange range, std::vector<double>& live);
    /// Detector time starts again.
    void clear();

  private:
    struct BoardTimes {
        net::Modules modules;
        bool heard = false;
        std::uint64_t end = 0;                  ///< newest time
        std::uint64_t held_begin = UINT64_MAX;  ///< of what was held, and how many datagrams these were
        std::uint64_t held_end = 0;
        std::uint64_t held = 0;
        std::uint64_t ticks = 0;   ///< of the latest datagrams, with the pauses between them
        std::uint64_t frames = 0;  ///< in these
    };
    struct DatagramCounts {
        double received = 0;
        double lost = 0;
    };
    struct Gap {
        std::uint32_t source = 0;
        gpu::TickRange range;
        bool first = false;  ///< before the first datagram
    };
    /// Beyond this, lost datagrams far apart in time count together.
    static constexpr std::uint64_t max_seconds = 256;
    static constexpr std::size_t max_gaps = 65'536;
    /// Frames over which their distance is averaged, at most.
    static constexpr std::uint64_t averaged_frames = 512;

    [[nodiscard]] std::uint64_t longest_pause(const BoardTimes& source) const;
    DatagramCounts& counts(std::uint64_t time, std::uint32_t source) {
        if (open_ == nullptr || time - open_start_ >= second_) open(time / second_);
        if (open_->size() <= source) open_->resize(sources_.size());
        return (*open_)[source];
    }
    void open(std::uint64_t second);
    [[nodiscard]] std::uint64_t first_of(const BoardTimes& source, std::uint64_t begin) const;
    void add_gap(std::uint32_t source, std::uint64_t begin, std::int64_t lost);
    void add_lost(std::uint32_t source, gpu::TickRange over, double lost);
    [[nodiscard]] double live_of(std::uint32_t source, gpu::TickRange range) const;

    const std::uint64_t second_;
    const std::uint64_t pause_;
    const std::uint32_t bdm_count_;
    std::vector<BoardTimes> sources_;
    std::size_t listed_;
    std::map<std::uint64_t, std::vector<DatagramCounts>> seconds_;  ///< [time / second][source]
    std::vector<DatagramCounts>* open_ = nullptr;                   ///< of the second of the latest datagram
    std::uint64_t open_start_ = 0;
    std::vector<Gap> gaps_;
};

}  // namespace petacq::daemon

// Gives the records of one pass to the frames to which they belong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "daemon/coverage/intervals.hpp"
#include "gpu/base/records.hpp"

namespace petacq::frames {

/// Not thread-safe.
class Distribution {
  public:
    using Take = std::function<void(std::size_t frame, std::span<const gpu::Coincidence>)>;
    using Complete = std::function<void(std::size_t frame)>;

    /// `times`: of each frame; no time belongs to two. `take` gets the records of a frame, `complete` is
    /// called once for each frame, in their order, when no record of it or of those before it is left.
    Distribution(const std::vector<daemon::Intervals>& times, Take take, Complete complete);

    /// Records in order of time, which continue those before.
    void add(std::span<const gpu::Coincidence> records);
    /// After the last add().
    void finish();

    /// How many frames at most have records and are not complete at a time.
    [[nodiscard]] std::size_t most_open() const;

  private:
    struct Piece {
        gpu::TickRange times;
        std::size_t frame;
    };
    void complete_before(std::uint64_t time);

    std::vector<Piece> pieces_;          // in order of time
    std::size_t at_ = 0;                 // the first that is not passed
    std::vector<gpu::TickRange> spans_;  // [frame] empty: it has no time
    std::size_t next_ = 0;               // frame to be completed
    Take take_;
    Complete complete_;
};

}  // namespace petacq::frames

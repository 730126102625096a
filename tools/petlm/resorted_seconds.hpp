// The seconds of a run, made again from its singles: where slices end, and what is measured in them.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>

#include "config/geometry.hpp"
#include "daemon/seconds/file.hpp"
#include "daemon/seconds/meter.hpp"
#include "gpu/coincidence_rules.hpp"
#include "gpu/interval_sums.hpp"
#include "tools/petlm/records/recorded_seconds.hpp"

namespace petacq::petlm {

/// The singles of a second are decided by `window + delay` past its end. One thread at a time.
class ResortedSeconds {
  public:
    /// `run`: directory of the run that the singles are of.
    ResortedSeconds(const std::filesystem::path& run, const config::Geometry& geometry, double tick_ps,
                    const gpu::CoincidenceRules& rules);

    /// The watermark of the slice that ends the open second. The next single has the time `next`.
    std::uint64_t watermark(std::uint64_t next);
    /// A slice that ends the open second is submitted.
    void end(std::uint64_t next);
    /// Whether a second is left after the open one, when no more singles come.
    bool more(std::uint64_t last);
    /// The slice that ends everything is submitted.
    void end_all(std::uint64_t last);
    /// The slice that ends the oldest second has been collected. `file`: nullptr if the seconds are not
    /// wanted.
    void collect(gpu::IntervalSums& sums, daemon::SecondsFile* file);
    [[nodiscard]] const daemon::SecondsTotal& total() const { return meter_.total(); }

  private:
    const std::uint64_t ticks_per_s_;
    const std::uint64_t reach_;
    RecordedSeconds recorded_;
    daemon::SecondsMeter meter_;
    std::optional<RecordedSeconds::Second> open_;  ///< absent before the first single, and at the end
    std::deque<RecordedSeconds::Second> submitted_;
};

}  // namespace petacq::petlm

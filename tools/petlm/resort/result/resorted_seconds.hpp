// The seconds of a run, made again from the sums that the search of its shards returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "daemon/seconds/file.hpp"
#include "daemon/seconds/live_sums.hpp"
#include "daemon/seconds/meter.hpp"
#include "gpu/interval_sums.hpp"
#include "gpu/rules/coincidence_rules.hpp"
#include "tools/petlm/resort/singles/second_ranges.hpp"

namespace petacq::petlm {

/// One thread at a time.
class ResortedSeconds {
  public:
    /// `runs`: those that the singles are of, which have heard such boards. `file`: nullptr if the seconds
    /// are not wanted.
    ResortedSeconds(std::span<const ReportingRun> runs, HeardBoards heard, std::vector<gpu::TickRange> ranges,
                    const config::Geometry& geometry, std::uint64_t ticks_per_s,
                    const gpu::CoincidenceRules& rules, daemon::SecondsFile* file);

    [[nodiscard]] std::span<const gpu::TickRange> ranges() const { return ranges_; }
    /// Sums over a part of the second at this time, which is not before those so far.
    void add(std::uint64_t time, const gpu::IntervalSums& sums);
    /// There are no more sums.
    void finish();
    [[nodiscard]] const daemon::SecondsTotal& total() const { return meter_.total(); }
    /// Mean share of the data of the boards that arrived; absent: unknown.
    [[nodiscard]] std::optional<double> live() const { return live_.mean(); }

    [[nodiscard]] const LostByAll& lost_by_all() const { return reports_.lost_by_all(); }

  private:
    void measure();
    [[nodiscard]] std::vector<std::uint64_t> singles_of_modules() const;

    const std::vector<gpu::TickRange> ranges_;
    const config::Geometry geometry_;
    const std::vector<std::uint16_t> module_of_;  ///< [crystal]
    BoardReports reports_;
    daemon::SecondsMeter meter_;
    daemon::LiveSums live_;
    daemon::SecondsFile* file_;
    const gpu::IntervalSums none_;
    gpu::IntervalSums sums_;  ///< of the second `open_`
    std::size_t open_ = 0;
};

}  // namespace petacq::petlm

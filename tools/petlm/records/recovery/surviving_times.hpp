// What a file that was cut off or damaged still covers: the times of which all its records survived.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "daemon/listmode/format.hpp"

namespace petacq::petlm {

/// Gathers them from the blocks of a file. What lies before the first record of a run, and after the last one
/// of a file that is complete, survives, too: those times reach from 0, and to 2^64-1.
class SurvivingTimes {
  public:
    /// `first_part`: its records are the first of the run, or of a file that stands alone.
    explicit SurvivingTimes(bool first_part) : first_part_(first_part) {}
    /// The next whole block.
    void add(const daemon::BlockHeader& block);
    /// There are no more. `trailer`: of the file, if it has its end.
    void finish(const std::optional<daemon::Trailer>& trailer);
    [[nodiscard]] daemon::Intervals times() const { return daemon::Intervals(ranges_); }

  private:
    const bool first_part_;
    std::vector<gpu::TickRange> ranges_;
    std::uint64_t next_record_ = 0;
};

/// The part of `whole` that survived. `first_time`: of the first record. A run that was interrupted does not
/// say what it covers: it begins at `run_begin`, which its closed files tell, or at its anchor or, if that is
/// not known, with the first record; a run of 1.0 that started before its data begins with its seconds.
/// `seconds`: that survived.
daemon::Coverage covered_by_survivors(const daemon::Coverage& whole, daemon::Intervals times,
                                      std::uint64_t first_time, const daemon::Intervals& seconds,
                                      std::optional<std::uint64_t> run_begin);

}  // namespace petacq::petlm

// The times that an export states: when records were taken, and for how long.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::petlm {

/// What the records cover, with what the file does not state itself. Where it does not know its times, from
/// the first to the last record: the coverage then says so in `unknown`. The live share of a part is that of
/// the seconds of its runs.
daemon::Coverage completed_coverage(const ExportSource& source);

/// Time for programs that know one start and one duration: from the reference to the first recorded time as
/// it was, from there on without the gaps between the intervals. Without gaps it is the time since the
/// reference.
class RecordedTime {
  public:
    explicit RecordedTime(const daemon::Coverage& coverage);

    /// From the reference to the first recorded time, not below 0.
    [[nodiscard]] double start_s() const;
    /// Recorded, rounded up to a whole millisecond: these programs leave out events that are not before the
    /// end.
    [[nodiscard]] double seconds() const { return static_cast<double>(length_ms_) / 1000; }
    [[nodiscard]] bool has_gaps() const { return starts_.size() > 1; }
    /// Of a record: from start_ms(), below end_ms().
    [[nodiscard]] std::uint64_t milliseconds(std::uint64_t time) const;
    [[nodiscard]] std::uint64_t start_ms() const;
    [[nodiscard]] std::uint64_t end_ms() const { return start_ms() + length_ms_; }

  private:
    daemon::Coverage coverage_;
    std::vector<std::uint64_t> starts_;  ///< of the intervals
    std::vector<std::uint64_t> before_;  ///< ticks of the intervals before each
    std::uint64_t length_ms_ = 1;
    double share_ = 1;  ///< recorded ticks in a tick of the intervals
};

/// What the times of the events are.
std::string time_sentence(const RecordedTime& time);

using TextRows = std::vector<std::pair<std::string, std::string>>;
/// What people must know of it, a name and a text each: times, rules, loss, what is unknown.
TextRows coverage_rows(const daemon::Coverage& coverage);

}  // namespace petacq::petlm

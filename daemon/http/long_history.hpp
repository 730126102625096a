// The rates of the last day, and the runs in it, in a file that a later daemon reads again.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/http/rate_history.hpp"

namespace petacq::daemon {

/// One row for each half minute: the mean of its seconds, for the lost fraction the largest. Bounded. Belongs
/// to one thread.
class LongHistory {
  public:
    using Time = std::chrono::system_clock::time_point;
    static constexpr std::int64_t step_s = 30;
    static constexpr std::size_t max_rows = 2880;  ///< a day
    static constexpr std::size_t max_runs = 200;

    /// Takes a status document, about once a second. If the clock was set back, what lies in the future of
    /// the clock is forgotten.
    void add(const nlohmann::json& status, Time now);
    /// The document /history/day, without marks: columns of equal length, oldest first, and the runs.
    [[nodiscard]] nlohmann::json document(Time now) const;
    [[nodiscard]] std::string text(Time now) const;

    /// For the file.
    [[nodiscard]] nlohmann::json file() const;
    [[nodiscard]] std::string file_text() const;
    /// Seconds since 1970: the end of the latest row; 0: there is none.
    [[nodiscard]] double latest() const;
    /// Takes the text of a file of an earlier daemon. Rows that are too old, or later than now, are left out.
    /// Throws std::runtime_error, which says what is wrong, if the text is none; the history is then empty.
    void read(std::string_view text, Time now);
    /// Rows that were completed since the start; the file is worth writing when it has changed.
    [[nodiscard]] std::uint64_t completed() const { return completed_; }
    /// Starts, stops and interruptions of runs that were seen since the start. A file without the latest
    /// would not know, after a crash, of the run that was in progress.
    [[nodiscard]] std::uint64_t run_changes() const { return run_changes_; }

  private:
    static constexpr std::size_t width = RateHistory::columns.size();
    using Values = std::array<double, width>;
    struct LongRow {
        std::int64_t step = 0;  ///< its begin, in steps since 1970
        Values values{};
    };
    struct RunMark {
        std::string run;
        double start = 0;            ///< seconds since 1970
        std::optional<double> stop;  ///< absent: in progress
        bool interrupted = false;
        bool failed = false;
    };

    void complete();
    void trim(std::int64_t now_step);
    void mark_runs(const nlohmann::json& status, double now);
    [[nodiscard]] nlohmann::json runs_json() const;

    std::deque<LongRow> rows_;
    std::deque<RunMark> runs_;
    // The row that is being made.
    std::int64_t step_ = 0;
    Values sums_{};
    std::array<std::uint32_t, width> counts_{};
    std::uint64_t completed_ = 0;
    std::uint64_t run_changes_ = 0;
};

}  // namespace petacq::daemon

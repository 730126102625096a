// What the daemon keeps of the past: every second of the last minutes, every half minute of the last day with
// its runs, and the events of the last days, in a file that a later daemon reads again.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/http/event_history.hpp"
#include "daemon/http/long_history.hpp"
#include "daemon/http/rate_history.hpp"

namespace petacq::daemon {

/// Belongs to one thread.
class History {
  public:
    using Time = std::chrono::system_clock::time_point;
    static constexpr std::size_t recent_rows = 600;  ///< ten minutes
    static constexpr std::size_t max_file_bytes = 4U << 20;

    /// Takes a status document, about once a second.
    void add(const nlohmann::json& status, Time now);
    /// The daemon stops in order.
    void stop(Time now) { events_.stop(now); }

    /// The document /history.
    [[nodiscard]] std::string recent_text() const { return recent_.text(); }
    /// The document /history/day.
    [[nodiscard]] std::string day_text(Time now) const;
    /// The answer to the method `history`: what is known from `since` on, and before `until`.
    [[nodiscard]] nlohmann::json between(Time since, Time until) const;

    /// Text for the file.
    [[nodiscard]] std::string file_text() const;
    /// Takes the text of a file of an earlier daemon. Throws std::runtime_error, which says what is wrong, if
    /// the text is none; the history is then empty.
    void read(std::string_view text, Time now);

    /// Half minutes that were completed since the start.
    [[nodiscard]] std::uint64_t completed() const { return day_.completed(); }
    /// Changes that a crash must not hide: starts, stops and interruptions of runs.
    [[nodiscard]] std::uint64_t run_changes() const { return day_.run_changes(); }
    /// All events.
    [[nodiscard]] std::uint64_t event_changes() const { return events_.changes(); }

  private:
    RateHistory recent_{recent_rows};
    LongHistory day_;
    EventHistory events_;
};

}  // namespace petacq::daemon

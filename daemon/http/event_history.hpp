// What happened in the last days, in order: the daemon and its runs, the strip, the reasons of health, and
// what operators noted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace petacq::daemon {

struct Event {
    double time = 0;   ///< seconds since 1970
    std::string kind;  ///< daemon_started, daemon_stopped, daemon_gone, run_started, run_ended, mark,
                       ///< recording, raised or cleared
    std::string code;  ///< of a reason of health; of recording, the state of the strip; else empty
    std::string run;   ///< its id; empty: none was in progress
    std::string text;  ///< a sentence for people; of a mark, what was noted
    std::optional<std::uint64_t> ticks;  ///< of a mark
};

/// Takes the status documents one after the other and finds out what has changed. Bounded. Belongs to one
/// thread.
class EventHistory {
  public:
    using Time = std::chrono::system_clock::time_point;
    static constexpr std::size_t max_events = 2000;
    static constexpr std::size_t max_text_bytes = 256;
    static constexpr double kept_s = 8 * 86'400.0;
    /// A reason that is back so soon has not been away.
    static constexpr double away_s = 60;

    void add(const nlohmann::json& status, Time now);
    /// The daemon stops in order.
    void stop(Time now);

    [[nodiscard]] const std::deque<Event>& events() const { return events_; }
    /// Grows with every change.
    [[nodiscard]] std::uint64_t changes() const { return changes_; }

    /// Rows for the file.
    [[nodiscard]] nlohmann::json rows() const;
    /// Takes the rows of an earlier daemon, which was last seen at `last`; if it did not stop in order, that
    /// is an event. Throws std::exception if they are none.
    void read(const nlohmann::json& rows, double last, Time now);

  private:
    void put(Event event);
    void add_run(const nlohmann::json& status, double now);
    void add_marks(const nlohmann::json& run, double now);
    void add_reasons(const nlohmann::json& status, double now);
    void add_recording(const nlohmann::json& status, double now);
    void trim(double now);
    bool forget_clearing(const std::string& code, double now);

    std::deque<Event> events_;
    std::uint64_t changes_ = 0;
    // As in the status document before.
    bool started_ = false;
    std::string run_;
    std::map<std::string, std::string> reasons_;  ///< the message of one of each code
    std::string recording_;
    std::deque<std::string> marks_;  ///< of the run
};

}  // namespace petacq::daemon

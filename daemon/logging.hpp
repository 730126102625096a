// Logging to stderr, without ever waiting for whoever reads it.
//
// Messages go through a bounded queue to a thread that writes them. When the queue is full the oldest are
// given up; when stderr takes nothing (a full pipe, a stopped terminal) messages are given up too. Both are
// counted.
//
// Line: 2026-01-31T12:00:00.000Z warning text
//
// When stderr is the journal of systemd, messages go to the journal with their priority and the fields
// PETACQ_RUN and PETACQ_SOURCE; without libsystemd as a line with the priority in front: <4>text.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace petacq::daemon {

enum class LogLevel { trace, debug, info, warning, error };

/// From the configuration's words. Throws std::invalid_argument for any other.
LogLevel log_level_from(std::string_view word);
const char* word_of(LogLevel level);

struct LogStatistics {
    std::uint64_t overrun = 0;    ///< given up since the queue was full
    std::uint64_t unwritten = 0;  ///< given up since stderr did not take them
};

/// Owns the log: one for the process, made first and destroyed last, since no thread may log while it is
/// destroyed. Without one, messages go nowhere.
class Logging {
  public:
    /// Writes to `descriptor` (duplicated). Descriptors 0 to 2 that are closed are opened on /dev/null first,
    /// so that no file opened later takes the place of stderr. Colour only if it is a terminal and NO_COLOR
    /// is unset. Whether it is the journal, $JOURNAL_STREAM says.
    explicit Logging(LogLevel level, int descriptor = 2);
    Logging(const Logging&) = delete;
    Logging& operator=(const Logging&) = delete;
    /// Writes what is queued, as far as stderr takes it.
    ~Logging();
};

// All of these may be called from any thread at any time while the Logging lives.
void set_log_level(LogLevel level);
LogLevel log_level();
bool log_enabled(LogLevel level);
LogStatistics log_statistics();
/// What is logged from now on happens during this run (for the journal); empty: during none.
void set_log_run(std::string_view run);
/// Control characters become spaces (one message, one line); longer than 4,000 bytes is cut. `source` is that
/// the message is about, if it is about one (for the journal).
void log_message(LogLevel level, std::string_view text, std::optional<std::uint32_t> source = {});
void log_formatted(LogLevel level, fmt::string_view format, fmt::format_args arguments);

template <class... Arguments>
void log_at(LogLevel level, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    if (log_enabled(level)) log_formatted(level, format, fmt::make_format_args(arguments...));
}
template <class... Arguments>
void log_debug(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    if (log_enabled(LogLevel::debug)) {
        log_formatted(LogLevel::debug, format, fmt::make_format_args(arguments...));
    }
}
template <class... Arguments>
void log_info(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    if (log_enabled(LogLevel::info))
        log_formatted(LogLevel::info, format, fmt::make_format_args(arguments...));
}
template <class... Arguments>
void log_warning(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    if (log_enabled(LogLevel::warning)) {
        log_formatted(LogLevel::warning, format, fmt::make_format_args(arguments...));
    }
}
template <class... Arguments>
void log_error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    if (log_enabled(LogLevel::error))
        log_formatted(LogLevel::error, format, fmt::make_format_args(arguments...));
}

/// At most one message per key and interval. Belongs to one thread.
class RateLimit {
  public:
    using Clock = std::chrono::steady_clock;
    explicit RateLimit(Clock::duration interval) : interval_(interval) {}

    /// Whether a message under `key` may go now; if so, how many were held back since the last one.
    std::optional<std::uint64_t> pass(std::string_view key, Clock::time_point now = Clock::now());
    /// Logs if pass(key) allows, with " (N more suppressed)" for those held back.
    template <class... Arguments>
    void log(LogLevel level, std::string_view key, fmt::format_string<Arguments...> format,
             Arguments&&... arguments) {
        if (!log_enabled(level)) return;
        if (const auto held_back = pass(key)) {
            log_limited(level, *held_back, format, fmt::make_format_args(arguments...));
        }
    }

  private:
    struct Entry {
        Clock::time_point last;
        std::uint64_t held_back = 0;
    };
    static void log_limited(LogLevel level, std::uint64_t held_back, fmt::string_view format,
                            fmt::format_args arguments);

    Clock::duration interval_;
    std::unordered_map<std::string, Entry> entries_;  ///< bounded: keys may come from outside
};

}  // namespace petacq::daemon

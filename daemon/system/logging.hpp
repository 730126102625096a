// Logging to stderr without waiting for its reader.
//
// Messages go through a bounded queue to a thread that writes them. When the queue is full, the oldest
// messages are discarded; messages are also discarded while stderr accepts nothing (a full pipe, a stopped
// terminal). Both are counted.
//
// Line: 2026-01-31T12:00:00.000Z warning text
//
// When stderr leads to the systemd journal, messages go there with their priority and the fields PETACQ_RUN
// and PETACQ_SOURCE. A build without libsystemd writes lines that start with the priority: <4>text.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "config/configuration.hpp"

namespace petacq::daemon {

using config::LogLevel;

struct LogStatistics {
    std::uint64_t overrun = 0;    ///< discarded because the queue was full
    std::uint64_t unwritten = 0;  ///< discarded because stderr did not accept them
};

/// Owns the log. A process has one, created first and destroyed last: no thread may log during its
/// destruction. Without one, messages are discarded.
class Logging {
  public:
    /// Writes to a duplicate of `descriptor`. Opens closed descriptors from 0 to 2 on /dev/null first, so
    /// that no file opened later becomes stderr. Uses colour on a terminal if NO_COLOR is unset, and the
    /// journal if $JOURNAL_STREAM names the descriptor.
    explicit Logging(LogLevel level, int descriptor = 2);
    Logging(const Logging&) = delete;
    Logging& operator=(const Logging&) = delete;
    /// Writes the queued messages, as far as stderr accepts them.
    ~Logging();
};

// Any thread may call these functions while the Logging exists.
void set_log_level(LogLevel level);
LogLevel log_level();
bool log_enabled(LogLevel level);
LogStatistics log_statistics();
/// The run that later messages belong to (for the journal); empty: none.
void set_log_run(std::string_view run);
/// Replaces control characters by spaces, so that a message is one line, and cuts it to 4,000 bytes.
/// `sources`: those that the message is about (for the journal).
void log_message(LogLevel level, std::string_view text, std::span<const std::uint32_t> sources = {});
void log_formatted(LogLevel level, fmt::string_view format, fmt::format_args arguments);

template <class... Arguments>
void log_info(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    log_formatted(LogLevel::info, format, fmt::make_format_args(arguments...));
}
template <class... Arguments>
void log_warning(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    log_formatted(LogLevel::warning, format, fmt::make_format_args(arguments...));
}
template <class... Arguments>
void log_error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    log_formatted(LogLevel::error, format, fmt::make_format_args(arguments...));
}

/// Allows one message per key and interval. One thread at a time.
class RateLimit {
  public:
    using Clock = std::chrono::steady_clock;
    explicit RateLimit(Clock::duration interval) : interval_(interval) {}

    /// The number of messages suppressed since the last one of this key, if one is due now; absent otherwise.
    std::optional<std::uint64_t> pass(std::string_view key, Clock::time_point now = Clock::now());
    /// Logs if pass(key) allows it, and appends " (N more suppressed)".
    template <class... Arguments>
    void log(LogLevel level, std::string_view key, fmt::format_string<Arguments...> format,
             Arguments&&... arguments) {
        if (!log_enabled(level)) return;
        if (const auto suppressed = pass(key)) {
            log_limited(level, *suppressed, format, fmt::make_format_args(arguments...));
        }
    }

  private:
    struct LimitedMessage {
        Clock::time_point last;
        std::uint64_t suppressed = 0;
    };
    static void log_limited(LogLevel level, std::uint64_t suppressed, fmt::string_view format,
                            fmt::format_args arguments);

    Clock::duration interval_;
    std::unordered_map<std::string, LimitedMessage> entries_;  ///< bounded, since keys may come from outside
};

}  // namespace petacq::daemon

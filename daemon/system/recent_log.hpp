// The latest messages of the log, for people who look at the live page.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "config/configuration.hpp"
#include "net/base/mutex.hpp"

namespace petacq::daemon {

struct LogEvent {
    std::chrono::system_clock::time_point time;
    config::LogLevel level = config::LogLevel::info;
    std::string text;
};

/// Keeps the latest messages from info up, each cut to max_bytes. Any thread.
class RecentLog {
  public:
    static constexpr std::size_t max_events = 200;
    static constexpr std::size_t max_bytes = 600;

    void add(std::chrono::system_clock::time_point time, config::LogLevel level, std::string_view text);
    /// The oldest first.
    [[nodiscard]] std::vector<LogEvent> events() const;

  private:
    mutable net::Mutex mutex_;
    std::vector<LogEvent> ring_ PETACQ_GUARDED_BY(mutex_);
    std::size_t oldest_ PETACQ_GUARDED_BY(mutex_) = 0;  ///< once the ring is full
};

/// That of this process: what Logging has written, or tried to write.
RecentLog& recent_log();

}  // namespace petacq::daemon

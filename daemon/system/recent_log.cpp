#include "daemon/system/recent_log.hpp"

#include <utility>

namespace petacq::daemon {

void RecentLog::add(std::chrono::system_clock::time_point time, config::LogLevel level,
                    std::string_view text) {
    if (level < config::LogLevel::info) return;
    LogEvent event{time, level, std::string(text.substr(0, max_bytes))};
    const net::MutexLock lock(mutex_);
    if (ring_.size() < max_events) {
        ring_.push_back(std::move(event));
    } else {
        ring_[oldest_] = std::move(event);
        oldest_ = (oldest_ + 1) % max_events;
    }
}

std::vector<LogEvent> RecentLog::events() const {
    const net::MutexLock lock(mutex_);
    std::vector<LogEvent> events;
    events.reserve(ring_.size());
    for (std::size_t i = 0; i < ring_.size(); ++i)
        events.push_back(ring_[(oldest_ + i) % ring_.size()]);
    return events;
}

RecentLog& recent_log() {
    static RecentLog log;
    return log;
}

}  // namespace petacq::daemon

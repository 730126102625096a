#include "daemon/system/logging.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "config/base/colour.hpp"
#include "config/base/printable.hpp"
#include "daemon/system/journal.hpp"
#include "daemon/system/recent_log.hpp"
#include "net/base/mutex.hpp"

namespace petacq::daemon {

namespace {

constexpr std::size_t queue_messages = 4096;
// With time and level a line stays below PIPE_BUF: a pipe that poll() calls writable takes it as a whole.
constexpr std::size_t max_message_bytes = 4000;
constexpr int patience_ms = 100;
constexpr std::size_t max_keys = 256;

std::atomic<int> current_level{static_cast<int>(LogLevel::info)};
std::atomic<spdlog::async_logger*> current_logger{nullptr};
std::atomic<std::uint64_t> unwritten{0};
std::atomic<std::uint64_t> finished_overruns{0};
std::atomic<bool> to_journal{false};

net::Mutex run_mutex;
std::string current_run PETACQ_GUARDED_BY(run_mutex);  // NOLINT(cert-err58-cpp): the constructor does nothing

/// The priorities of syslog(3).
int priority_of(spdlog::level::level_enum level) {
    if (level >= spdlog::level::err) return 3;
    if (level == spdlog::level::warn) return 4;
    return level == spdlog::level::info ? 6 : 7;
}

LogLevel level_of(spdlog::level::level_enum level) {
    if (level >= spdlog::level::err) return LogLevel::error;
    if (level == spdlog::level::warn) return LogLevel::warning;
    if (level == spdlog::level::info) return LogLevel::info;
    return level == spdlog::level::debug ? LogLevel::debug : LogLevel::trace;
}

/// Writes to the journal or to a descriptor. Discards a line that is not accepted soon. O_NONBLOCK would be
/// simpler, but it would affect every process that shares the terminal or pipe.
class PatientSink final : public spdlog::sinks::base_sink<std::mutex> {
  public:
    explicit PatientSink(int descriptor)
        : descriptor_(descriptor),
          journal_(is_journal_stream(descriptor)),
          colour_(config::colour_wanted(descriptor)) {}
    PatientSink(const PatientSink&) = delete;
    PatientSink& operator=(const PatientSink&) = delete;
    ~PatientSink() override { ::close(descriptor_); }

  protected:
    void sink_it_(const spdlog::details::log_msg& message) override {
        const std::string_view payload(message.payload.data(), message.payload.size());
        const std::string_view words = payload.substr(0, payload.find(journal_separator));
        recent_log().add(message.time, level_of(message.level), words);
        if (journal_) {
            const int priority = priority_of(message.level);
            if (!send_to_journal(priority, payload)) write(fmt::format("<{}>{}\n", priority, words));
            return;
        }
        spdlog::memory_buf_t line;
        formatter_->format(message, line);
        if (colour_ && message.color_range_end > message.color_range_start) {
            const std::string_view text(line.data(), line.size());
            const std::string_view before = text.substr(0, message.color_range_start);
            const std::string_view word =
                text.substr(message.color_range_start, message.color_range_end - message.color_range_start);
            const std::string_view after = text.substr(message.color_range_end);
            write(fmt::format("{}{}{}\x1b[0m{}", before, colour_of(message.level), word, after));
        } else {
            write({line.data(), line.size()});
        }
    }
    void flush_() override {}

  private:
    static const char* colour_of(spdlog::level::level_enum level) {
        if (level >= spdlog::level::err) return "\x1b[1;31m";
        if (level == spdlog::level::warn) return "\x1b[33m";
        if (level == spdlog::level::info) return "\x1b[32m";
        return "\x1b[36m";
    }

    void write(std::string_view line) {
        std::string ended;
        if (torn_) {
            ended.append("\n").append(line);
            line = ended;
        }
        while (!line.empty()) {
            pollfd ready{descriptor_, POLLOUT, 0};
            // After a discarded line the next ones do not wait, so that a full queue drains at once.
            const int polled = ::poll(&ready, 1, stuck_ ? 0 : patience_ms);
            if (polled < 0 && errno == EINTR) continue;
            stuck_ = polled <= 0;
            const ssize_t written = stuck_ ? -1 : ::write(descriptor_, line.data(), line.size());
            if (written < 0) {
                if (!stuck_ && errno == EINTR) continue;
                unwritten.fetch_add(1, std::memory_order_relaxed);
                return;
            }
            line.remove_prefix(static_cast<std::size_t>(written));
            torn_ = !line.empty();
        }
    }

    int descriptor_;
    bool journal_;
    bool colour_;
    bool stuck_ = false;
    bool torn_ = false;  ///< the last line is incomplete; the next one must start on a new line
};

spdlog::level::level_enum spdlog_level(LogLevel level) {
    constexpr std::array levels{spdlog::level::trace, spdlog::level::debug, spdlog::level::info,
                                spdlog::level::warn, spdlog::level::err};
    return levels[static_cast<std::size_t>(level)];
}

/// Leaves signals to other threads, and turns SIGPIPE into the error of a write to a closed pipe.
void block_signals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

struct Machinery {
    std::shared_ptr<spdlog::details::thread_pool> pool;
    std::shared_ptr<spdlog::async_logger> logger;
};
// The one Logging owns it.
std::unique_ptr<Machinery> machinery;  // NOLINT(cert-err58-cpp): the constructor does nothing

}  // namespace

Logging::Logging(LogLevel level, int descriptor) {
    if (machinery) throw std::logic_error("a process has one Logging");
    for (int standard = 0; standard <= 2; ++standard) {
        // open() gives the lowest free descriptor, which is this one.
        if (::fcntl(standard, F_GETFD) < 0 &&
            ::open("/dev/null", O_RDWR) != standard) {  // NOLINT: meant to stay
            throw std::runtime_error("cannot open /dev/null");
        }
    }
    const int own = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    if (own < 0)
        throw std::runtime_error("cannot use descriptor " + std::to_string(descriptor) + " for the log");
    auto sink = std::make_shared<PatientSink>(own);
    to_journal.store(is_journal_stream(own), std::memory_order_relaxed);
    sink->set_formatter(std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%eZ %^%-7l%$ %v",
                                                                    spdlog::pattern_time_type::utc));
    auto made = std::make_unique<Machinery>();
    made->pool = std::make_shared<spdlog::details::thread_pool>(queue_messages, 1, block_signals);
    made->logger = std::make_shared<spdlog::async_logger>("petacqd", std::move(sink), made->pool,
                                                          spdlog::async_overflow_policy::overrun_oldest);
    made->logger->set_level(spdlog::level::trace);  // log_enabled() has tested the level
    machinery = std::move(made);
    set_log_level(level);
    current_logger.store(machinery->logger.get(), std::memory_order_release);
}

Logging::~Logging() {
    current_logger.store(nullptr, std::memory_order_release);
    finished_overruns.fetch_add(machinery->pool->overrun_counter());
    machinery.reset();  // the pool writes the queued messages and joins its thread
}

void set_log_level(LogLevel level) {
    current_level.store(static_cast<int>(level), std::memory_order_relaxed);
}

LogLevel log_level() {
    return static_cast<LogLevel>(current_level.load(std::memory_order_relaxed));
}

bool log_enabled(LogLevel level) {
    return static_cast<int>(level) >= current_level.load(std::memory_order_relaxed) &&
           current_logger.load(std::memory_order_acquire) != nullptr;
}

LogStatistics log_statistics() {
    LogStatistics statistics;
    statistics.unwritten = unwritten.load(std::memory_order_relaxed);
    statistics.overrun = finished_overruns.load(std::memory_order_relaxed);
    if (current_logger.load(std::memory_order_acquire) != nullptr) {
        statistics.overrun += machinery->pool->overrun_counter();
    }
    return statistics;
}

void set_log_run(std::string_view run) {
    const net::MutexLock lock(run_mutex);
    current_run = run;
}

void log_message(LogLevel level, std::string_view text, std::span<const std::uint32_t> sources) {
    if (!log_enabled(level)) return;
    std::string line(text.substr(0, max_message_bytes));
    for (char& c : line)
        if (c == '\n' || c == '\t') c = ' ';
    line = config::printable(line).substr(0, max_message_bytes);
    if (to_journal.load(std::memory_order_relaxed)) {
        for (const std::uint32_t source : sources)
            line += fmt::format("{}PETACQ_SOURCE={}", journal_separator, source);
        const net::MutexLock lock(run_mutex);
        if (!current_run.empty()) line += fmt::format("{}PETACQ_RUN={}", journal_separator, current_run);
    }
    current_logger.load(std::memory_order_acquire)->log(spdlog_level(level), spdlog::string_view_t(line));
}

void log_formatted(LogLevel level, fmt::string_view format, fmt::format_args arguments) {
    if (log_enabled(level)) log_message(level, fmt::vformat(format, arguments));
}

std::optional<std::uint64_t> RateLimit::pass(std::string_view key, Clock::time_point now) {
    auto found = entries_.find(std::string(key));
    if (found == entries_.end()) {
        if (entries_.size() >= max_keys) {
            std::erase_if(entries_, [&](const auto& entry) { return now - entry.second.last >= interval_; });
            if (entries_.size() >= max_keys) return std::nullopt;
        }
        entries_.emplace(key, LimitedMessage{now, 0});
        return 0;
    }
    LimitedMessage& entry = found->second;
    if (now - entry.last < interval_) {
        ++entry.suppressed;
        return std::nullopt;
    }
    entry.last = now;
    return std::exchange(entry.suppressed, 0);
}

void RateLimit::log_limited(LogLevel level, std::uint64_t suppressed, fmt::string_view format,
                            fmt::format_args arguments) {
    std::string text = fmt::vformat(format, arguments);
    if (suppressed > 0) text += fmt::format(" ({} more suppressed)", suppressed);
    log_message(level, text);
}

}  // namespace petacq::daemon

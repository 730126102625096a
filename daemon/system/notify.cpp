#include "daemon/system/notify.hpp"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <nlohmann/json.hpp>
#include <utility>

#include "net/base/mutex.hpp"

namespace petacq::daemon {

namespace {

/// The socket of the service manager. sd_notify(3) waits while the queue of that socket is full, which is
/// for ever if the manager hangs; this never waits.
class Manager {
  public:
    Manager() {
        const char* const path = std::getenv("NOTIFY_SOCKET");
        if (path == nullptr || (*path != '/' && *path != '@')) return;
        const std::size_t length = std::strlen(path);
        if (length >= sizeof address_.sun_path) return;
        address_.sun_family = AF_UNIX;
        std::memcpy(address_.sun_path, path, length);
        if (*path == '@') address_.sun_path[0] = '\0';  // an abstract name
        address_bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
        descriptor_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    }
    Manager(const Manager&) = delete;
    Manager& operator=(const Manager&) = delete;
    ~Manager() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }

    [[nodiscard]] bool there() const { return descriptor_ >= 0; }

    /// Sends a message that the next one of its kind replaces. Returns false if it did not reach the manager.
    bool send(const std::string& state) {
        const net::MutexLock lock(mutex_);
        return descriptor_ < 0 || (send_waiting() && send_now(state));
    }

    /// Sends a message that must not be lost: before the next one if the manager takes none now.
    void deliver(std::string state) {
        const net::MutexLock lock(mutex_);
        if (descriptor_ < 0) return;
        if (waiting_.size() == max_waiting) waiting_.pop_front();
        waiting_.push_back(std::move(state));
        send_waiting();
    }

  private:
    static constexpr std::size_t max_waiting = 16;

    bool send_waiting() PETACQ_REQUIRES(mutex_) {
        while (!waiting_.empty()) {
            if (!send_now(waiting_.front())) return false;
            waiting_.pop_front();
        }
        return true;
    }
    bool send_now(const std::string& state) {
        return ::sendto(descriptor_, state.data(), state.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                        reinterpret_cast<const sockaddr*>(&address_), address_bytes_) >= 0;
    }

    sockaddr_un address_{};
    socklen_t address_bytes_ = 0;
    int descriptor_ = -1;
    net::Mutex mutex_;
    std::deque<std::string> waiting_ PETACQ_GUARDED_BY(mutex_);
};

Manager& manager() {
    static Manager the_manager;
    return the_manager;
}

std::uint64_t monotonic_us() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000U +
           static_cast<std::uint64_t>(now.tv_nsec) / 1'000U;
}

/// Three digits and a prefix: "12.3 M".
std::string short_number(double value) {
    const char* prefix = "";
    for (const char* next : {"k", "M", "G"}) {
        if (value < 999.5) break;
        value /= 1000;
        prefix = next;
    }
    const int decimals = *prefix == '\0' || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    return fmt::format("{:.{}f} {}", value, decimals, prefix);
}

/// "12.3 M frames/s, " for a known rate; empty for an unknown one.
std::string rate(const nlohmann::json& rates, const char* key, const char* unit) {
    const auto found = rates.find(key);
    if (found == rates.end() || !found->is_number()) return "";
    std::string text = short_number(found->get<double>());
    if (text.back() == ' ') text.pop_back();
    return text + " " + unit + ", ";
}

std::string health_word(const nlohmann::json& health) {
    std::string text = health.value("state", "unknown");
    const auto reasons = health.find("reasons");
    if (reasons == health.end() || reasons->empty()) return text;
    text += " (" + reasons->front().value("message", "");
    if (reasons->size() > 1) text += fmt::format("; {} more", reasons->size() - 1);
    return text + ")";
}

}  // namespace

bool has_manager() {
    return manager().there();
}

void notify_ready() {
    manager().deliver("READY=1");
}

void notify_reloading() {
    manager().deliver(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", monotonic_us()));
}

void notify_stopping(std::chrono::microseconds within) {
    manager().deliver(fmt::format("STOPPING=1\nEXTEND_TIMEOUT_USEC={}", within.count()));
}

void notify_watchdog() {
    manager().send("WATCHDOG=1");
}

bool notify_status(std::string_view line) {
    std::string state = "STATUS=" + std::string(line);
    // Text after a line break would be another assignment.
    std::replace(state.begin(), state.end(), '\n', ' ');
    return manager().send(state);
}

void StatusNotifier::tell(const nlohmann::json& status) {
    std::string line = status_line(status);
    if (line != told_ && notify_status(line)) told_ = std::move(line);
}

std::optional<std::chrono::microseconds> watchdog_interval() {
    const auto number = [](const char* name) -> std::optional<std::int64_t> {
        const char* const text = std::getenv(name);
        if (text == nullptr) return std::nullopt;
        std::int64_t value = 0;
        const char* const end = text + std::strlen(text);
        const auto [stop, error] = std::from_chars(text, end, value);
        if (error != std::errc() || stop != end || value <= 0) return std::nullopt;
        return value;
    };
    // Meant for another process if it names one.
    if (const auto pid = number("WATCHDOG_PID"); pid && *pid != ::getpid()) return std::nullopt;
    if (const auto us = number("WATCHDOG_USEC")) return std::chrono::microseconds(*us);
    return std::nullopt;
}

std::string status_line(const nlohmann::json& status) {
    std::string text = status.value("state", "unknown");
    const auto run = status.find("run");
    if (run != status.end() && run->is_object() && run->contains("id")) {
        text += " " + run->at("id").get<std::string>();
    }
    text += ": ";
    if (const auto rates = status.find("rates"); rates != status.end()) {
        text += rate(*rates, "frames_per_s", "frames/s") + rate(*rates, "prompts_per_s", "prompts/s");
    }
    if (const auto health = status.find("health"); health != status.end()) text += health_word(*health);
    return text;
}

}  // namespace petacq::daemon

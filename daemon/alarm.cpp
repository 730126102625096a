#include "daemon/alarm.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "config/error.hpp"
#include "config/printable.hpp"
#include "daemon/host/background_thread.hpp"
#include "daemon/host/logging.hpp"
#include "daemon/host/utc.hpp"

namespace petacq::daemon {

using nlohmann::json;

namespace {

constexpr std::chrono::seconds time_limit{30};
constexpr std::size_t most_waiting = 64;

std::string text_at(const json& document, const char* key) {
    const auto found = document.is_object() ? document.find(key) : document.end();
    return found != document.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

AlarmFacts event_of(const char* event, const json& status, const std::string& code,
                    const std::string& severity, const std::string& message) {
    const json none = json::object();
    const json& recording = status.contains("recording") ? status.at("recording") : none;
    const json& health = status.contains("health") ? status.at("health") : none;
    return {{"event", event},
            {"code", code},
            {"severity", severity},
            {"message", config::printable(message)},
            {"health", text_at(health, "state")},
            {"recording", text_at(recording, "state")},
            {"word", text_at(recording, "word")},
            {"run", text_at(recording, "run_id")},
            {"scanner", text_at(status, "scanner")},
            {"host", host_name()},
            {"utc", utc_text(std::chrono::system_clock::now())}};
}

/// The attributes of a child with a group of its own and the signals of a fresh process.
class SpawnSettings {
  public:
    explicit SpawnSettings(int input) {
        ::posix_spawnattr_init(&attributes_);
        ::posix_spawn_file_actions_init(&files_);
        sigset_t none;
        sigset_t all;
        sigemptyset(&none);
        sigfillset(&all);
        ::posix_spawnattr_setsigmask(&attributes_, &none);
        ::posix_spawnattr_setsigdefault(&attributes_, &all);
        ::posix_spawnattr_setpgroup(&attributes_, 0);
        ::posix_spawnattr_setflags(&attributes_,
                                   POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        ::posix_spawn_file_actions_adddup2(&files_, input, STDIN_FILENO);
    }
    SpawnSettings(const SpawnSettings&) = delete;
    SpawnSettings& operator=(const SpawnSettings&) = delete;
    ~SpawnSettings() {
        ::posix_spawnattr_destroy(&attributes_);
        ::posix_spawn_file_actions_destroy(&files_);
    }

    /// 0 or an error number.
    int spawn(pid_t& child, std::vector<std::string> command, std::vector<std::string> environment) {
        const auto pointers = [](std::vector<std::string>& texts) {
            std::vector<char*> all;
            for (std::string& text : texts)
                all.push_back(text.data());
            all.push_back(nullptr);
            return all;
        };
        return ::posix_spawnp(&child, command.front().c_str(), &files_, &attributes_,
                              pointers(command).data(), pointers(environment).data());
    }

  private:
    posix_spawnattr_t attributes_{};
    posix_spawn_file_actions_t files_{};
};

/// The daemon's own environment, and the facts.
std::vector<std::string> environment_of(const AlarmFacts& event) {
    std::vector<std::string> environment;
    for (char** entry = environ; *entry != nullptr; ++entry)
        if (std::strncmp(*entry, "NOTIFY_SOCKET=", 14) != 0) environment.emplace_back(*entry);
    for (const auto& [key, value] : event) {
        std::string name = "PETACQ_" + key;
        for (char& c : name)
            if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
        environment.push_back(name + "=" + value);
    }
    return environment;
}

/// A file in memory: the command reads it when it likes, and nobody waits for that.
int file_with(const std::string& text) {
    const int file = ::memfd_create("petacqd-alarm", MFD_CLOEXEC);
    if (file < 0) return file;
    if (::write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        ::lseek(file, 0, SEEK_SET) != 0) {
        ::close(file);
        return -1;
    }
    return file;
}

}  // namespace

bool AlarmEvents::may_tell(const std::string& key, Clock::time_point now) {
    const auto [entry, first] = told_.emplace(key, now);
    if (first) return true;
    if (now - entry->second < min_interval_) return false;
    entry->second = now;
    return true;
}

std::vector<AlarmFacts> AlarmEvents::of(const json& status, Clock::time_point now) {
    std::vector<AlarmFacts> events;
    std::map<std::string, json> reasons;  // one of each code
    if (const auto health = status.find("health"); health != status.end() && health->contains("reasons")) {
        for (const json& reason : health->at("reasons"))
            reasons.emplace(text_at(reason, "code"), reason);
    }
    for (const auto& [code, reason] : reasons) {
        if (raised_.contains(code) || !may_tell("raised " + code, now)) continue;
        events.push_back(
            event_of("raised", status, code, text_at(reason, "severity"), text_at(reason, "message")));
        raised_[code] = events.back();
    }
    for (auto known = raised_.begin(); known != raised_.end();) {
        const auto& [code, told] = *known;
        if (reasons.contains(code) || !may_tell("cleared " + code, now)) {
            ++known;
            continue;
        }
        events.push_back(event_of("cleared", status, code, told.at("severity"), told.at("message")));
        known = raised_.erase(known);
    }
    const auto recording = status.find("recording");
    if (recording == status.end()) return events;
    const std::string state = text_at(*recording, "state");
    const bool first = recording_.empty();
    if (state == recording_ || (!first && !may_tell("recording " + state, now))) return events;
    recording_ = state;
    if (!first) {
        events.push_back(event_of("recording", status, state, "",
                                  text_at(*recording, "word") + ": " + text_at(*recording, "text")));
    }
    return events;
}

Alarm::Alarm(const config::Alarm& settings)
    : command_(settings.command), events_(std::chrono::seconds(settings.min_interval_s)) {
    const std::string& program = command_.front();
    if (program.find('/') != std::string::npos && ::access(program.c_str(), X_OK) != 0) {
        throw config::Error("alarm.command: " + program +
                            " cannot be executed: " + std::generic_category().message(errno));
    }
    thread_ = background_thread("alarm", 10, [this](const std::stop_token& stopping) { run(stopping); });
}

void Alarm::observe(const json& status) {
    std::vector<AlarmFacts> events = events_.of(status, AlarmEvents::Clock::now());
    if (events.empty()) return;
    const net::MutexLock lock(mutex_);
    for (AlarmFacts& event : events) {
        if (waiting_.size() == most_waiting) waiting_.pop_front();
        waiting_.push_back(std::move(event));
    }
    more_.notify_one();
}

void Alarm::run(const std::stop_token& stopping) {
    for (;;) {
        AlarmFacts event;
        {
            net::MutexLock lock(mutex_);
            while (waiting_.empty()) {
                if (stopping.stop_requested()) return;
                more_.wait(lock, stopping, [this]() PETACQ_REQUIRES(mutex_) { return !waiting_.empty(); });
            }
            event = std::move(waiting_.front());
            waiting_.pop_front();
        }
        tell(event, stopping);
    }
}

void Alarm::tell(const AlarmFacts& event, const std::stop_token& stopping) const {
    const std::string what = event.at("event") + " " + event.at("code");
    const int input = file_with(json(event).dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
    if (input < 0) return log_error("alarm: {}: no memory for its text", what);
    pid_t child = -1;
    const int error = SpawnSettings(input).spawn(child, command_, environment_of(event));
    ::close(input);
    if (error != 0)
        return log_error("alarm: {} cannot be started: {}", command_.front(), std::strerror(error));
    log_info("alarm: {}: {} was started", what, command_.front());
    const auto limit = std::chrono::steady_clock::now() + time_limit;
    int status = 0;
    for (;;) {
        const pid_t ended = ::waitpid(child, &status, WNOHANG);
        if (ended == child) break;
        if (ended < 0 && errno != EINTR) return;
        if (stopping.stop_requested()) return;  // the system takes over
        if (std::chrono::steady_clock::now() > limit) {
            ::kill(-child, SIGKILL);
            ::waitpid(child, &status, 0);
            return log_error("alarm: {}: {} was killed: it did not end within {} s", what, command_.front(),
                             time_limit.count());
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    log_error("alarm: {}: {} ended with {} {}", what, command_.front(),
              WIFEXITED(status) ? "status" : "signal",
              WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

}  // namespace petacq::daemon

#include "daemon/service/alarm.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "config/base/error.hpp"
#include "daemon/system/background_thread.hpp"
#include "daemon/system/logging.hpp"

namespace petacq::daemon {

using nlohmann::json;

namespace {

constexpr std::chrono::seconds time_limit{30};
constexpr std::size_t max_waiting = 64;

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
        if (waiting_.size() == max_waiting) waiting_.pop_front();
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
        if (ended < 0 && errno != EINTR)
            return log_error("alarm: {}: it is unknown how {} ended: {}", what, command_.front(),
                             std::strerror(errno));
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

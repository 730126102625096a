#include "tools/petctl/hosts/launcher.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <system_error>
#include <thread>
#include <vector>

#include "daemon/system/shell_word.hpp"

namespace petacq::petctl {

using daemon::ControlUnavailable;

namespace {

/// Asks no questions, and notices within seconds that a host does not answer any more.
constexpr const char* default_launcher =
    "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=3";

std::vector<std::string> command_line(const std::string& host, const std::string& socket) {
    const char* given = std::getenv("PETACQ_SSH");
    std::istringstream launcher(given != nullptr && *given != '\0' ? given : default_launcher);
    std::vector<std::string> words;
    for (std::string word; launcher >> word;)
        words.push_back(word);
    words.push_back(host);
    words.push_back("petctl " + (socket.empty() ? "" : "--socket " + daemon::shell_word(socket) + " ") +
                    "relay");
    return words;
}

ControlUnavailable failure(const std::string& host, const std::string& what, int error) {
    return ControlUnavailable("cannot reach petacqd on " + host + ": " + what + ": " +
                              std::generic_category().message(error));
}

/// The errno of posix_spawn.
int spawn(std::vector<std::string> words, int socket, int errors, pid_t& pid) {
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, socket, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    // In a process group of its own, so that Ctrl-C leaves petctl the way to the host.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const int error =
        ::posix_spawnp(&pid, arguments.front(), &actions, &attributes, arguments.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/// A launcher whose connection has ended says why within this time, on a busy host, too.
constexpr std::chrono::seconds patience{5};

}  // namespace

Launcher::Launcher(const std::string& host, const std::string& socket) {
    const std::vector<std::string> words = command_line(host, socket);
    errors_ = ::memfd_create("petctl-errors", MFD_CLOEXEC);
    if (errors_ < 0) throw failure(host, "a file in memory", errno);
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        const int error = errno;
        ::close(errors_);
        throw failure(host, "a socket", error);
    }
    client_.emplace(ends[0], "on " + host);
    const int error = spawn(words, ends[1], errors_, pid_);
    ::close(ends[1]);
    if (error == 0) return;
    ::close(errors_);
    throw failure(host, words.front(), error);
}

Launcher::~Launcher() {
    client_.reset();  // the end of its input ends the relay, and so the launcher
    if (pid_ > 0 && !ended_within(std::chrono::seconds(1))) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    ::close(errors_);
}

bool Launcher::ended_within(std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (pid_ > 0) {
        const pid_t ended = ::waitpid(pid_, nullptr, WNOHANG);
        if (ended == pid_ || (ended < 0 && errno != EINTR)) pid_ = -1;
        if (pid_ > 0 && std::chrono::steady_clock::now() >= deadline) return false;
        if (pid_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
}

std::string Launcher::last_words() {
    client_.reset();
    if (!ended_within(patience)) return "";
    std::array<char, 4096> end{};
    const off_t size = std::max<off_t>(::lseek(errors_, 0, SEEK_END), 0);
    const ssize_t got =
        ::pread(errors_, end.data(), end.size(), std::max<off_t>(size - static_cast<off_t>(end.size()), 0));
    std::string text(end.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    text.erase(text.find_last_not_of("\r\n ") + 1);
    if (const std::size_t line = text.find_last_of("\r\n"); line != std::string::npos)
        text.erase(0, line + 1);
    return text;
}

}  // namespace petacq::petctl

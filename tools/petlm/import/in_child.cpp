#include "tools/petlm/import/in_child.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <system_error>

namespace petacq::petlm {
namespace {

/// Never returns: nothing of this process is to be cleaned up twice.
[[noreturn]] void be_child(int to, const std::function<std::string()>& read) {
    for (const int crash : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL})
        std::signal(crash, SIG_DFL);
    // Of damaged files it also reads for ever.
    const rlimit limit{10, 10};
    ::setrlimit(RLIMIT_CPU, &limit);
    try {
        const std::string text = read();
        for (std::size_t at = 0; at < text.size();) {
            const ssize_t written = ::write(to, text.data() + at, text.size() - at);
            if (written <= 0) ::_exit(1);
            at += static_cast<std::size_t>(written);
        }
    } catch (...) {
        ::_exit(1);
    }
    ::_exit(0);
}

}  // namespace

std::optional<std::string> read_in_child(const std::function<std::string()>& read) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    const pid_t child = ::fork();
    if (child == 0) be_child(ends[1], read);
    const int why = errno;
    ::close(ends[1]);
    std::string text;
    std::array<char, 65536> piece{};
    ssize_t count = 0;
    while (child > 0 &&
           ((count = ::read(ends[0], piece.data(), piece.size())) > 0 || (count < 0 && errno == EINTR)))
        if (count > 0) text.append(piece.data(), static_cast<std::size_t>(count));
    ::close(ends[0]);
    if (child < 0) throw std::system_error(why, std::generic_category(), "fork");
    int status = 0;
    while (::waitpid(child, &status, 0) < 0)
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
    return text;
}

}  // namespace petacq::petlm

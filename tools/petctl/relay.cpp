#include "tools/petctl/commands.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

namespace petacq::petctl {

using daemon::ControlClient;

namespace {

/// False at the end of what can be read, or if nobody takes it.
bool pass_on(int from, int to) {
    std::array<char, 65'536> chunk;
    ssize_t got = 0;
    do {
        got = ::read(from, chunk.data(), chunk.size());
    } while (got < 0 && errno == EINTR);
    if (got <= 0) return false;
    std::string_view rest(chunk.data(), static_cast<std::size_t>(got));
    while (!rest.empty()) {
        const ssize_t written = ::write(to, rest.data(), rest.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        rest.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

}  // namespace

int relay(ControlClient& client) {
    std::array<pollfd, 2> inputs{pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{client.descriptor(), POLLIN, 0}};
    while (true) {
        if (::poll(inputs.data(), inputs.size(), -1) < 0) continue;  // a signal that was handled
        if (inputs[0].revents != 0 && !pass_on(STDIN_FILENO, client.descriptor())) return 0;
        if (inputs[1].revents != 0 && !pass_on(client.descriptor(), STDOUT_FILENO)) return 0;
    }
}

}  // namespace petacq::petctl

#include "tools/petctl/commands.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/base/seconds_since.hpp"
#include "tools/petctl/terminal.hpp"
#include "tools/petctl/text/status_text.hpp"
#include "tools/petctl/text/strip.hpp"

namespace petacq::petctl {

using daemon::ControlClient;
using daemon::ControlUnavailable;
using nlohmann::json;

namespace {

using Clock = std::chrono::steady_clock;

const json every_second = {{"interval_s", 1.0}};  // NOLINT(cert-err58-cpp)

volatile std::sig_atomic_t stop_requested = 0;

void show(const json& status, Form form, bool redraw) {
    if (redraw) {
        const std::string text =
            form == Form::document
                ? printable(status.dump(2, ' ', false, json::error_handler_t::replace), "\n") + "\n"
                : joined(status_text(status, form), colour_wanted());
        fmt::print("\x1b[H\x1b[2J{}", text);
    } else {
        fmt::print("{}\n", form == Form::document
                               ? printable(status.dump(-1, ' ', false, json::error_handler_t::replace))
                               : status_line(status));
    }
    std::fflush(stdout);
}

/// Blocks the signals that stop the display or report a change of its size, except during wait(), so that
/// none is missed between a check and the wait.
class Signals {
  public:
    Signals() {
        struct sigaction stop {};
        stop.sa_handler = [](int) { stop_requested = 1; };
        sigset_t held;
        sigemptyset(&held);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
            ::sigaction(signal, &stop, nullptr);
            sigaddset(&held, signal);
        }
        sigaddset(&held, SIGWINCH);
        ::sigprocmask(SIG_BLOCK, &held, &outside_);
    }

    /// Waits for a key, a status, a signal, or one second. `daemon`: -1 if there is no connection. False if
    /// the keyboard is gone.
    [[nodiscard]] bool wait(int daemon) const {
        std::array<pollfd, 2> inputs{pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{daemon, POLLIN, 0}};
        const timespec second{1, 0};
        if (::ppoll(inputs.data(), inputs.size(), &second, &outside_) <= 0) return true;
        return (inputs[0].revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
    }

  private:
    sigset_t outside_{};
};

}  // namespace

int watch_status(ControlClient& client, Form form) {
    // All output has been flushed, so there is nothing to do on Ctrl-C.
    std::signal(SIGINT, [](int) { ::_exit(0); });
    std::signal(SIGTERM, [](int) { ::_exit(0); });
    const bool redraw = ::isatty(STDOUT_FILENO) == 1;
    json status = client.call("subscribe", every_second);
    while (true) {
        show(status, form, redraw);
        // Elsewhere lines that do not come say the same.
        const auto notification = client.next_notification(redraw ? answer_awaited : ControlClient::for_ever);
        status = notification ? notification->value("params", json::object()) : unanswered(std::move(status));
    }
}

int watch_dashboard(ControlClient& first, const std::string& socket) {
    if (::isatty(STDOUT_FILENO) != 1 || ::isatty(STDIN_FILENO) != 1)
        return watch_status(first, Form::summary);
    ControlClient* client = &first;  // nullptr: the daemon is away
    std::unique_ptr<ControlClient> later;
    Dashboard dashboard;
    auto taken = Clock::now();
    const auto add = [&](json status) {
        dashboard.add(std::move(status));
        taken = Clock::now();
    };
    add(client->call("subscribe", every_second));
    const Signals signals;
    Terminal terminal;
    while (stop_requested == 0) {
        const double age_s = config::seconds_since(taken);
        terminal.show(dashboard.draw(terminal.width(), terminal.height(), terminal.unicode(), age_s));
        terminal.title(dashboard.title());
        if (!signals.wait(client != nullptr ? client->descriptor() : -1)) break;
        KeyPress key{};
        while (terminal.read_key(key)) {
            if (key == KeyPress::quit) return 0;
            dashboard.press(key);
        }
        try {
            if (client == nullptr) {
                later = std::make_unique<ControlClient>(socket);
                add(later->call("subscribe", every_second, std::chrono::seconds(2)));
                client = later.get();
            }
            while (const auto notification = client->next_notification(std::chrono::milliseconds(0)))
                add(notification->value("params", json::object()));
        } catch (const ControlUnavailable&) {
            client = nullptr;
            dashboard.lose();
        }
    }
    return 0;
}

}  // namespace petacq::petctl

// The way to another host: a program such as ssh, which runs `petctl relay` there.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "daemon/control/client.hpp"

namespace petacq::petctl {

/// A running launcher. Its standard input and output are one end of a socket; the client has the other end.
class Launcher {
  public:
    /// Starts `LAUNCHER HOST 'petctl --socket SOCKET relay'`. The launcher is the words of the environment
    /// variable PETACQ_SSH, or else ssh without questions. Throws ControlUnavailable.
    Launcher(const std::string& host, const std::string& socket);
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;
    /// Ends the launcher.
    ~Launcher();

    [[nodiscard]] daemon::ControlClient& client() { return *client_; }
    /// Closes the connection, and returns the last line that the launcher, or petctl on the other host, wrote
    /// to standard error; "" if there is none, or if the launcher does not end.
    std::string last_words();

  private:
    bool ended_within(std::chrono::milliseconds limit);

    std::optional<daemon::ControlClient> client_;
    int errors_ = -1;  ///< a file in memory: standard error of the launcher
    pid_t pid_ = -1;
};

}  // namespace petacq::petctl

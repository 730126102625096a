// A petacqd for a benchmark, as a process of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/control/client.hpp"

namespace petacq::bench {

/// The petacqd in the directory of this program. Throws std::runtime_error if there is none.
std::filesystem::path petacqd_beside();

/// Replays a capture with the configuration that a DaemonProcess has left in the directory, into a run of
/// that name. Returns the exit status of petacqd.
int replay(const std::filesystem::path& directory, const std::filesystem::path& program,
           const std::filesystem::path& capture, const std::string& run);

/// Runs from the constructor to the destructor, which ends it with SIGTERM.
class DaemonProcess {
  public:
    /// Puts configuration, log and control socket into the directory, to which paths in the configuration are
    /// relative, and waits until the daemon is ready. Throws std::runtime_error with the log if it does not
    /// start.
    DaemonProcess(nlohmann::json configuration, const std::filesystem::path& directory,
                  const std::filesystem::path& program);
    ~DaemonProcess();
    DaemonProcess(const DaemonProcess&) = delete;
    DaemonProcess& operator=(const DaemonProcess&) = delete;

    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] std::filesystem::path socket() const { return directory_ / "control.sock"; }
    [[nodiscard]] std::uint16_t http_port() const;
    /// The port of each socket, in the order of the configuration.
    [[nodiscard]] std::vector<std::uint16_t> ports();
    /// A call on the control socket.
    nlohmann::json call(std::string_view method);
    nlohmann::json call(std::string_view method, const nlohmann::json& parameters);

  private:
    void wait_until_ready() const;
    void end() const;
    [[nodiscard]] std::string log() const;

    const std::filesystem::path directory_;
    pid_t pid_ = -1;
    std::unique_ptr<daemon::ControlClient> client_;
};

}  // namespace petacq::bench

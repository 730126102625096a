// A petacqd as a service manager runs it: with a notify socket, inherited sockets and its environment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/control_client.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"

namespace petacq::test {

/// A Unix datagram socket that takes notifications.
class NotifySocket {
  public:
    explicit NotifySocket(const std::filesystem::path& path);
    ~NotifySocket();
    NotifySocket(const NotifySocket&) = delete;
    NotifySocket& operator=(const NotifySocket&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }
    /// Everything that has come, each notification as it was sent.
    const std::vector<std::string>& messages();
    /// How many of them have this line, or one that begins so.
    std::size_t count(std::string_view line);
    /// Waits until one has come that has such a line, `nth` times in all.
    bool until(std::string_view line, std::size_t nth = 1);

  private:
    std::string path_;
    int descriptor_;
    std::vector<std::string> messages_;
};

struct Supervision {
    NotifySocket* notify = nullptr;
    std::vector<std::pair<std::string, std::string>> environment = {};
    std::vector<int> sockets = {};  ///< handed over, and kept open here
    std::string socket_name = "frames";
};

class Supervised {
  public:
    Supervised(const Site& site, const Supervision& supervision, const std::string& name = "petacqd");
    ~Supervised();
    Supervised(const Supervised&) = delete;
    Supervised& operator=(const Supervised&) = delete;

    [[nodiscard]] pid_t pid() const { return pid_; }
    void signal(int number) const;
    /// Its exit status; minus the signal that ended it.
    int wait();
    [[nodiscard]] std::string log() const { return read_file(log_); }
    /// Waits until the log has this. As in wait(), notifications are taken meanwhile: a queue that is full
    /// would hold the daemon up.
    bool says(const std::string& text);
    /// On the control socket, which must be there.
    nlohmann::json call(const std::string& method,
                        const nlohmann::json& parameters = nlohmann::json::object());

  private:
    bool ended();
    void take_notifications();

    NotifySocket* notify_;
    std::filesystem::path control_;
    std::filesystem::path log_;
    pid_t pid_ = -1;
    bool reaped_ = false;
    int status_ = 0;
};

/// Stops one thread of a child, as a debugger does, until it goes out of scope: a real stall of one stage, in
/// the unmodified program.
class StoppedThread {
  public:
    /// The thread that has this name. Throws std::runtime_error.
    StoppedThread(pid_t process, const std::string& name);
    ~StoppedThread();
    StoppedThread(const StoppedThread&) = delete;
    StoppedThread& operator=(const StoppedThread&) = delete;

  private:
    pid_t thread_ = -1;
};

/// A UDP socket on loopback.
class Udp {
  public:
    /// Bound; port 0: any.
    explicit Udp(std::uint16_t port = 0);
    ~Udp();
    Udp(const Udp&) = delete;
    Udp& operator=(const Udp&) = delete;
    [[nodiscard]] int descriptor() const { return descriptor_; }
    [[nodiscard]] std::uint16_t port() const;
    void connect(std::uint16_t port) const;
    /// Sends to where it is connected; false when nobody has that port.
    [[nodiscard]] bool send(const std::string& datagram) const;
    /// Several in one, as a NIC or loopback may deliver them joined.
    [[nodiscard]] bool send_joined(const std::string& datagram, std::size_t count) const;

  private:
    int descriptor_;
};

/// A heartbeat: a header and no frames.
std::string heartbeat(std::uint16_t source, std::uint64_t sequence);

}  // namespace petacq::test

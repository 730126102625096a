// petacqd as a service manager runs it: with a notify socket, inherited sockets and their environment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/control/client.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"

namespace petacq::test {

/// A Unix datagram socket that receives notifications.
class NotifySocket {
  public:
    explicit NotifySocket(const std::filesystem::path& path);
    ~NotifySocket();
    NotifySocket(const NotifySocket&) = delete;
    NotifySocket& operator=(const NotifySocket&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }
    /// No notification arrives any more; those so far are kept.
    void close();
    /// All notifications so far, each as it was sent.
    const std::vector<std::string>& messages();
    /// The number of lines that start with `line`, in all notifications so far.
    std::size_t count(std::string_view line);
    /// Waits until `nth` such lines have arrived.
    bool until(std::string_view line, std::size_t nth = 1);

  private:
    std::string path_;
    int descriptor_;
    std::vector<std::string> messages_;
};

struct Supervision {
    NotifySocket* notify = nullptr;
    std::vector<std::string> environment = {};  ///< NAME=VALUE
    std::vector<int> sockets = {};              ///< passed to the daemon; they stay open in the test
    std::string socket_name = "frames";
};

class Supervised {
  public:
    Supervised(const Site& site, const Supervision& supervision, const std::string& name = "petacqd");

    [[nodiscard]] pid_t pid() const { return process_.pid(); }
    void signal(int number) const { process_.signal(number); }
    /// The exit status, or minus the number of the signal that killed the daemon.
    int wait();
    [[nodiscard]] std::string log() const { return process_.errors(); }
    /// Waits until the log contains the text. Like wait(), it reads the notifications meanwhile: a full queue
    /// would block the daemon.
    bool says(const std::string& text);
    /// Calls a method over the control socket, which must exist.
    nlohmann::json call(const std::string& method,
                        const nlohmann::json& parameters = nlohmann::json::object());

  private:
    void take_notifications();

    NotifySocket* notify_;
    std::filesystem::path control_;
    Process process_;
};

/// Stops one thread of a child process, as a debugger does, until the end of the scope: a real stall of one
/// stage in the unmodified program. The thread stops where it waits, and so holds no lock of the memory
/// allocator.
class StoppedThread {
  public:
    /// Throws std::runtime_error if no thread has this name, or if it never waits.
    StoppedThread(pid_t process, const std::string& name);
    /// The first thread of the process; others that have not been given a name have the program's, too.
    static StoppedThread main_of(pid_t process);
    ~StoppedThread();
    StoppedThread(const StoppedThread&) = delete;
    StoppedThread& operator=(const StoppedThread&) = delete;

  private:
    StoppedThread(pid_t process, pid_t thread);
    [[nodiscard]] bool stop_where_it_waits() const;

    pid_t thread_;
    std::filesystem::path state_;  ///< the file that names its system call
};

/// A UDP socket on loopback.
class Udp {
  public:
    /// Binds to the port, or to any free port if it is 0.
    explicit Udp(std::uint16_t port = 0);
    ~Udp();
    Udp(const Udp&) = delete;
    Udp& operator=(const Udp&) = delete;
    [[nodiscard]] int descriptor() const { return descriptor_; }
    [[nodiscard]] std::uint16_t port() const;
    void connect(std::uint16_t port) const;
    /// Sends to the connected port; false if nobody listens there.
    [[nodiscard]] bool send(const std::string& datagram) const;
    /// Sends the datagram `count` times in one system call; a NIC or loopback may deliver them joined.
    [[nodiscard]] bool send_joined(const std::string& datagram, std::size_t count) const;

  private:
    int descriptor_;
};

/// A heartbeat: a header and no frames.
std::string heartbeat(std::uint16_t source, std::uint64_t sequence);

}  // namespace petacq::test

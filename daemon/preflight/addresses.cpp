#include "daemon/preflight/addresses.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "daemon/control/control_token.hpp"
#include "daemon/preflight/port_holder.hpp"
#include "net/receive/udp_socket.hpp"

namespace petacq::daemon {

namespace {

namespace asio = boost::asio;

/// Binds for a moment. TCP may follow a daemon that has just stopped, as the HTTP server does.
boost::system::error_code bind_error(const asio::ip::tcp::endpoint& endpoint) {
    asio::io_context io;
    asio::ip::tcp::socket socket(io);
    boost::system::error_code error;
    socket.open(endpoint.protocol(), error);
    if (!error) socket.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) socket.bind(endpoint, error);
    return error;
}

/// The daemon that listens on the control socket of this configuration.
struct RunningDaemon {
    bool runs = false;
    std::int64_t process = 0;  // 0: not known
};

Finding in_use(const std::string& subject, const std::string& name, Transport transport, std::uint16_t port,
               const RunningDaemon& daemon) {
    const auto holder = port_holder(transport, port);
    // petacqd sees the user of somebody else's process, but not its program.
    const bool seen = holder && holder->process != 0;
    const bool own = !seen || (daemon.process != 0 ? holder->process == daemon.process
                                                   : holder->program.starts_with("petacqd"));
    if (daemon.runs && own)
        return {Level::good, subject, name + ": in use by the petacqd that is running", ""};
    if (holder && holder->program == "systemd") {
        return {Level::good, subject, name + ": held open by systemd (petacqd.socket) for the daemon", ""};
    }
    if (seen && holder->program.starts_with("petacqd")) {
        return {Level::problem, subject,
                name + ": taken by another petacqd, which has another control socket: " + holder->text(),
                "stop it, or choose another port (/receive/sockets, /http/listen): two daemons never share "
                "one"};
    }
    const std::string letters = transport == Transport::udp ? "ulpn" : "tlpn";
    std::string fix = fmt::format(
        "sudo ss -{} 'sport = :{}' names the program; stop it, or choose another port", letters, port);
    if (transport == Transport::udp)
        fix += ". systemctl status petacqd.socket tells whether systemd holds it";
    return {Level::problem, subject,
            name + ": taken by " + (holder ? holder->text() : "another program") +
                (daemon.runs ? "" : ", and no petacqd of this configuration is running"),
            fix};
}

Finding bind_finding(const std::string& subject, const std::string& name, const std::string& key,
                     const std::error_code& error) {
    std::string fix = "correct " + key;
    if (error == std::errc::permission_denied) {
        fix = "use a port from 1024 on (" + key +
              "): lower ones need a privilege that the service does not have";
    } else if (error == std::errc::address_not_available) {
        fix = "ip -brief address shows the addresses of this host; correct " + key +
              ", or use 0.0.0.0 for all of them; with free_bind: true the address may come later";
    }
    return {Level::problem, subject, name + ": " + error.message(), fix};
}

Finding group_finding(const net::ReceiverOptions& receiver, const std::string& what) {
    return {Level::problem, "multicast", what,
            receiver.multicast_interface.empty()
                ? "set multicast_interface in /receive/sockets to the name or address of the interface "
                  "(ip -brief address)"
                : "ip -brief address shows the interfaces that are up and their addresses; correct "
                  "multicast_interface in /receive/sockets; with free_bind: true it may come later"};
}

/// Opens the sockets as the daemon does, with the same code, and keeps them open until all have been tried.
class ReceiverCheck {
  public:
    explicit ReceiverCheck(const RunningDaemon& daemon) : daemon_(daemon) {}

    void look_at(const net::ReceiverOptions& receiver) {
        const std::string name = fmt::format("{}:{}", receiver.address, receiver.port);
        if (receiver.descriptor >= 0)
            return say({Level::good, "receive", name + ": handed over by systemd", ""});
        // If the first socket of a port was refused, the others of that port would be refused for the same
        // reason.
        if (receiver.port_use == net::PortUse::follows && refused_.contains(name)) return;
        try {
            held_.push_back(std::make_unique<net::ReceiveSocket>(io_, receiver));
            say({Level::good, "receive", name + ": free", ""});
            groups(*held_.back());
        } catch (const net::BindError& error) {
            refused_.insert(name);
            say(error.code == std::errc::address_in_use
                    ? in_use("receive", name, Transport::udp, receiver.port, daemon_)
                    : bind_finding("receive", name, "/receive/sockets", error.code));
            groups_elsewhere(receiver);
        } catch (const net::JoinError& error) {
            say({Level::good, "receive", name + ": free", ""});
            say(group_finding(receiver, error.what()));
        } catch (const std::exception& error) {
            say({Level::problem, "receive", error.what(), "correct /receive/sockets"});
        }
    }
    [[nodiscard]] Findings findings() && { return std::move(findings_); }

  private:
    /// Sockets that share an address and port have one line.
    void say(Finding finding) {
        const auto same = [&](const Finding& f) {
            return f.subject == finding.subject && f.text == finding.text;
        };
        if (std::none_of(findings_.begin(), findings_.end(), same)) findings_.push_back(std::move(finding));
    }
    void groups(const net::ReceiveSocket& socket) {
        for (const net::Membership& one : socket.groups.published()) {
            const std::string name =
                one.group + (one.interface_name.empty() ? " on the interface that the system chooses"
                                                        : " on " + one.interface_name);
            say(one.trouble.empty()
                    ? Finding{Level::good, "multicast", name + ": can be joined", ""}
                    : Finding{Level::note, "multicast",
                              name + ": " + one.trouble + "; it is joined when that has changed", ""});
        }
    }
    /// On another port, since that of the configuration cannot be had now.
    void groups_elsewhere(net::ReceiverOptions receiver) {
        if (receiver.multicast_groups.empty()) return;
        receiver.port = 0;
        try {
            const net::ReceiveSocket socket(io_, receiver);
            groups(socket);
        } catch (const std::exception& error) {
            say(group_finding(receiver, error.what()));
        }
    }

    RunningDaemon daemon_;
    asio::io_context io_;
    std::vector<std::unique_ptr<net::ReceiveSocket>> held_;
    std::set<std::string> refused_;
    Findings findings_;
};

Finding check_http(const std::string& listen, const RunningDaemon& daemon) {
    constexpr const char* subject = "http";
    const std::size_t colon = listen.rfind(':');
    std::string address = listen.substr(0, colon);
    if (address.front() == '[') address = address.substr(1, address.size() - 2);
    const auto port = static_cast<std::uint16_t>(std::stoul(listen.substr(colon + 1)));
    const auto error = bind_error({asio::ip::make_address(address), port});
    if (!error) {
        // SO_REUSEADDR allows the bind, not the listening.
        if (port == 0 || !port_holder(Transport::tcp, port))
            return {Level::good, subject, listen + ": free", ""};
        return in_use(subject, listen, Transport::tcp, port, daemon);
    }
    if (error == asio::error::address_in_use) return in_use(subject, listen, Transport::tcp, port, daemon);
    return bind_finding(subject, listen, "/http/listen", error);
}

Finding check_token(const std::string& file) {
    constexpr const char* subject = "control token";
    try {
        (void)read_control_token(file);
        return {Level::good, subject, file + ": readable for those who may", ""};
    } catch (const ControlTokenError& error) {
        return {Level::problem, subject, error.text, error.fix};
    }
}

/// `key`: of the configuration.
Finding check_unix_socket(const char* subject, const std::filesystem::path& path, const std::string& key,
                          bool daemon_running) {
    const std::string directory = path.parent_path().empty() ? "." : path.parent_path().string();
    std::error_code ignored;
    const bool systemds = directory == "/run/petacqd";
    if (!std::filesystem::is_directory(directory, ignored)) {
        if (systemds) return {Level::good, subject, path.string() + ": systemd makes the directory", ""};
        return {Level::problem, subject, "directory " + directory + " does not exist",
                "sudo install -d -o petacq -g petacq -m 755 " + directory};
    }
    struct stat there {};
    const bool exists = ::lstat(path.c_str(), &there) == 0;
    if (exists && !S_ISSOCK(there.st_mode)) {
        return {Level::problem, subject, path.string() + ": something that is not a socket is there",
                "move it away, or correct " + key};
    }
    if (::access(directory.c_str(), W_OK) != 0) {
        const std::string text = directory + ": not writable for this user";
        if (systemds)
            return {Level::note, subject, text, "test as the service's user: sudo -u petacq petacqd --check"};
        return {Level::problem, subject, text, "sudo chown petacq: " + directory + ", or correct " + key};
    }
    return {Level::good, subject,
            path.string() + (exists && daemon_running ? ": a petacqd is running" : ": free"), ""};
}

/// Who listens there; absent: nobody, or nobody whom this user may ask.
std::optional<std::int64_t> listener(const std::string& path) {
    sockaddr_un address{};
    if (path.size() >= sizeof address.sun_path) return std::nullopt;
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, path.size());
    const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    std::optional<std::int64_t> process;
    if (::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
        ucred peer{};
        socklen_t size = sizeof peer;
        process = ::getsockopt(probe, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
    } else if (errno == EAGAIN) {
        process = 0;
    }
    ::close(probe);
    return process;
}

/// A petacqd holds the lock of its control socket, or listens on it.
RunningDaemon running_daemon(const config::Control& control) {
    const std::optional<std::int64_t> process = listener(control.socket);
    if (process) return {true, *process};
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg)
    const int lock = ::open((control.socket + ".lock").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (lock < 0) return {};
    const bool held = ::flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    ::close(lock);
    return {held, 0};
}

}  // namespace

bool daemon_runs(const config::Configuration& configuration) {
    const auto& sockets = configuration.receive.sockets;
    return running_daemon(configuration.control).runs ||
           std::any_of(sockets.begin(), sockets.end(), [](const config::Socket& socket) {
               const auto holder = socket.port == 0 ? std::nullopt : port_holder(Transport::udp, socket.port);
               return holder && holder->program.starts_with("petacqd");
           });
}

Findings check_addresses(const config::Configuration& configuration,
                         const std::vector<net::ReceiverOptions>& receivers) {
    const RunningDaemon daemon = running_daemon(configuration.control);
    Findings findings{
        check_unix_socket("control socket", configuration.control.socket, "/control/socket", daemon.runs)};
    if (!configuration.tap.socket.empty()) {
        findings.push_back(
            check_unix_socket("tap socket", configuration.tap.socket, "/tap/socket", daemon.runs));
    }
    ReceiverCheck check(daemon);
    for (const net::ReceiverOptions& receiver : receivers)
        check.look_at(receiver);
    for (Finding& finding : std::move(check).findings())
        findings.push_back(std::move(finding));
    const config::Http& http = configuration.http;
    if (http.listen.empty()) return findings;
    findings.push_back(check_http(http.listen, daemon));
    if (http.allow_control) findings.push_back(check_token(http.control_token_file));
    return findings;
}

}  // namespace petacq::daemon

#include "daemon/check/addresses.hpp"

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
#include <boost/asio/ip/udp.hpp>
#include <cerrno>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "daemon/check/port_holder.hpp"
#include "daemon/control/control_token.hpp"
#include "net/udp_socket.hpp"

namespace petacq::daemon {

namespace {

namespace asio = boost::asio;

/// Binds for a moment. TCP may follow a daemon that has just stopped, as the HTTP server does.
template <class Protocol>
boost::system::error_code bind_error(const typename Protocol::endpoint& endpoint, bool reuse) {
    asio::io_context io;
    typename Protocol::socket socket(io);
    boost::system::error_code error;
    socket.open(endpoint.protocol(), error);
    if (!error && reuse) socket.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) socket.bind(endpoint, error);
    return error;
}

Finding in_use(const std::string& subject, const std::string& name, Transport transport, std::uint16_t port,
               bool daemon_running) {
    const auto holder = port_holder(transport, port);
    // petacqd sees the user of somebody else's process, but not its program.
    const bool own = !holder || holder->program.empty() || holder->program.starts_with("petacqd");
    if (daemon_running && own)
        return {Level::good, subject, name + ": in use by the petacqd that is running", ""};
    if (holder && holder->program == "systemd") {
        return {Level::good, subject, name + ": held open by systemd (petacqd.socket) for the daemon", ""};
    }
    const std::string letters = transport == Transport::udp ? "ulpn" : "tlpn";
    std::string fix = fmt::format(
        "sudo ss -{} 'sport = :{}' names the program; stop it, or choose another port", letters, port);
    if (transport == Transport::udp)
        fix += ". systemctl status petacqd.socket tells whether systemd holds it";
    return {Level::problem, subject,
            name + ": taken by " + (holder ? holder->text() : "another program") +
                (daemon_running ? "" : ", and no petacqd is running"),
            fix};
}

Finding bind_finding(const std::string& subject, const std::string& name, const std::string& key,
                     const boost::system::error_code& error) {
    std::string fix = "correct " + key;
    if (error == asio::error::access_denied) {
        fix = "use a port from 1024 on (" + key +
              "): lower ones need a privilege that the service does not have";
    } else if (error == std::errc::address_not_available) {
        fix = "ip -brief address shows the addresses of this host; correct " + key +
              ", or use 0.0.0.0 for all of them";
    }
    return {Level::problem, subject, name + ": " + error.message(), fix};
}

Finding check_receiver(const net::ReceiverOptions& receiver, bool daemon_running) {
    constexpr const char* subject = "receive";
    const std::string name = fmt::format("{}:{}", receiver.address, receiver.port);
    if (receiver.descriptor >= 0) return {Level::good, subject, name + ": handed over by systemd", ""};
    const asio::ip::udp::endpoint endpoint(asio::ip::make_address_v4(receiver.address), receiver.port);
    const auto error = bind_error<asio::ip::udp>(endpoint, false);
    if (!error) return {Level::good, subject, name + ": free", ""};
    if (error == asio::error::address_in_use)
        return in_use(subject, name, Transport::udp, receiver.port, daemon_running);
    return bind_finding(subject, name, "/receive/sockets", error);
}

/// On another port, and thus with a running daemon, too.
Finding check_group(net::ReceiverOptions receiver) {
    constexpr const char* subject = "multicast";
    receiver.port = 0;
    receiver.address = "0.0.0.0";
    const std::string name = receiver.multicast_group + (receiver.multicast_interface.empty()
                                                             ? " on the interface that the system chooses"
                                                             : " on " + receiver.multicast_interface);
    try {
        asio::io_context io;
        const net::ReceiveSocket joined(io, receiver);
        return {Level::good, subject, name + ": can be joined", ""};
    } catch (const std::exception& error) {
        return {Level::problem, subject, name + ": " + error.what(),
                receiver.multicast_interface.empty()
                    ? "set multicast_interface in /receive/sockets to the address of the interface "
                      "(ip -brief address)"
                    : "ip -brief address shows the interfaces that are up and their addresses; correct "
                      "multicast_interface in /receive/sockets"};
    }
}

Finding check_http(const std::string& listen, bool daemon_running) {
    constexpr const char* subject = "http";
    const std::size_t colon = listen.rfind(':');
    std::string address = listen.substr(0, colon);
    if (address.front() == '[') address = address.substr(1, address.size() - 2);
    const auto port = static_cast<std::uint16_t>(std::stoul(listen.substr(colon + 1)));
    const auto error = bind_error<asio::ip::tcp>({asio::ip::make_address(address), port}, true);
    if (!error) {
        // SO_REUSEADDR allows the bind, not the listening.
        if (port == 0 || !port_holder(Transport::tcp, port))
            return {Level::good, subject, listen + ": free", ""};
        return in_use(subject, listen, Transport::tcp, port, daemon_running);
    }
    if (error == asio::error::address_in_use)
        return in_use(subject, listen, Transport::tcp, port, daemon_running);
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

/// A petacqd holds the lock of its control socket.
bool listens(const config::Control& control) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg)
    const int lock = ::open((control.socket + ".lock").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (lock >= 0) {
        const bool held = ::flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        ::close(lock);
        return held;
    }
    sockaddr_un address{};
    if (errno != EACCES || control.socket.size() >= sizeof address.sun_path) return false;
    address.sun_family = AF_UNIX;
    control.socket.copy(address.sun_path, control.socket.size());
    const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const bool listening =
        ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 || errno == EAGAIN;
    ::close(probe);
    return listening;
}

}  // namespace

bool daemon_runs(const config::Configuration& configuration) {
    const auto& sockets = configuration.receive.sockets;
    return listens(configuration.control) ||
           std::any_of(sockets.begin(), sockets.end(), [](const config::Socket& socket) {
               const auto holder = socket.port == 0 ? std::nullopt : port_holder(Transport::udp, socket.port);
               return holder && holder->program.starts_with("petacqd");
           });
}

Findings check_addresses(const config::Configuration& configuration,
                         const std::vector<net::ReceiverOptions>& receivers, bool daemon_running) {
    Findings findings{
        check_unix_socket("control socket", configuration.control.socket, "/control/socket", daemon_running)};
    if (!configuration.tap.socket.empty()) {
        findings.push_back(
            check_unix_socket("tap socket", configuration.tap.socket, "/tap/socket", daemon_running));
    }
    std::set<std::pair<std::string, std::uint16_t>> bound;
    std::set<std::pair<std::string, std::string>> joined;
    for (const net::ReceiverOptions& receiver : receivers) {
        if (bound.emplace(receiver.address, receiver.port).second)
            findings.push_back(check_receiver(receiver, daemon_running));
        if (!receiver.multicast_group.empty() &&
            joined.emplace(receiver.multicast_group, receiver.multicast_interface).second) {
            findings.push_back(check_group(receiver));
        }
    }
    const config::Http& http = configuration.http;
    if (http.listen.empty()) return findings;
    findings.push_back(check_http(http.listen, daemon_running));
    if (http.allow_control) findings.push_back(check_token(http.control_token_file));
    return findings;
}

}  // namespace petacq::daemon

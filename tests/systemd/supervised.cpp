#include "tests/systemd/supervised.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "net/wire.hpp"

namespace petacq::test {

namespace {

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

/// Only what may be called between fork and exec.
[[noreturn]] void become_daemon(const std::vector<int>& sockets, const std::string& log, char** argv) {
    constexpr int first = 3;     // SD_LISTEN_FDS_START
    constexpr int aside = 1000;  // out of the way of the places they go to
    for (std::size_t i = 0; i < sockets.size(); ++i)
        ::dup2(sockets[i], aside + static_cast<int>(i));
    for (std::size_t i = 0; i < sockets.size(); ++i) {
        ::dup2(aside + static_cast<int>(i), first + static_cast<int>(i));
        ::close(aside + static_cast<int>(i));
    }
    const int err = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ::dup2(err, 2);
    ::dup2(err, 1);
    if (!sockets.empty()) ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
    ::execv(argv[0], argv);
    ::_exit(127);
}

}  // namespace

NotifySocket::NotifySocket(const std::filesystem::path& path)
    : path_(path.string()), descriptor_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        fail("bind " + path_);
}

NotifySocket::~NotifySocket() {
    ::close(descriptor_);
}

const std::vector<std::string>& NotifySocket::messages() {
    std::array<char, 4096> text{};
    ssize_t got = 0;
    while ((got = ::recv(descriptor_, text.data(), text.size(), 0)) > 0)
        messages_.emplace_back(text.data(), static_cast<std::size_t>(got));
    return messages_;
}

std::size_t NotifySocket::count(std::string_view line) {
    std::size_t found = 0;
    for (const std::string& message : messages()) {
        std::istringstream lines(message);
        for (std::string one; std::getline(lines, one);)
            found += one.starts_with(line) ? 1 : 0;
    }
    return found;
}

bool NotifySocket::until(std::string_view line, std::size_t nth) {
    return eventually([&] { return count(line) >= nth; });
}

Supervised::Supervised(const Site& site, const Supervision& supervision, const std::string& name)
    : notify_(supervision.notify), control_(site.socket()), log_(site.directory() / (name + ".err")) {
    std::vector<std::string> arguments{PETACQD_PROGRAM, "--config", site.configuration()};
    std::vector<char*> argv;
    for (std::string& argument : arguments)
        argv.push_back(argument.data());
    argv.push_back(nullptr);
    write_file(log_, "");
    pid_ = ::fork();
    if (pid_ < 0) fail("fork");
    if (pid_ != 0) return;
    if (notify_ != nullptr) ::setenv("NOTIFY_SOCKET", notify_->path().c_str(), 1);
    for (const auto& [key, value] : supervision.environment)
        ::setenv(key.c_str(), value.c_str(), 1);
    if (!supervision.sockets.empty()) {
        std::string names;
        for (std::size_t i = 0; i < supervision.sockets.size(); ++i)
            names += (i == 0 ? "" : ":") + supervision.socket_name;
        ::setenv("LISTEN_FDS", std::to_string(supervision.sockets.size()).c_str(), 1);
        ::setenv("LISTEN_FDNAMES", names.c_str(), 1);
    }
    become_daemon(supervision.sockets, log_.string(), argv.data());
}

Supervised::~Supervised() {
    if (ended()) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

void Supervised::take_notifications() {
    if (notify_ != nullptr) notify_->messages();
}

bool Supervised::ended() {
    take_notifications();
    int status = 0;
    if (!reaped_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
        reaped_ = true;
        status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    return reaped_;
}

void Supervised::signal(int number) const {
    if (!reaped_) ::kill(pid_, number);
}

int Supervised::wait() {
    if (!eventually([this] { return ended(); })) throw std::runtime_error("petacqd does not end: " + log());
    return status_;
}

bool Supervised::says(const std::string& text) {
    return eventually([&] {
        take_notifications();
        return contains(log(), text);
    });
}

nlohmann::json Supervised::call(const std::string& method, const nlohmann::json& parameters) {
    return daemon::ControlClient(control_).call(method, parameters);
}

StoppedThread::StoppedThread(pid_t process, const std::string& name) {
    const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
        if (read_file(task.path() / "comm") == name + "\n") thread_ = std::stoi(task.path().filename());
    }
    if (thread_ < 0) throw std::runtime_error("no thread is named " + name);
    if (::ptrace(PTRACE_SEIZE, thread_, nullptr, nullptr) != 0) fail("ptrace");
    if (::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) != 0) fail("ptrace");
    int status = 0;
    if (::waitpid(thread_, &status, __WALL) != thread_) fail("waitpid");
}

StoppedThread::~StoppedThread() {
    ::ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
}

namespace {

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
}

}  // namespace

Udp::Udp(std::uint16_t port) : descriptor_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in address = loopback(port);
    if (::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("bind");
}

Udp::~Udp() {
    ::close(descriptor_);
}

std::uint16_t Udp::port() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
}

void Udp::connect(std::uint16_t port) const {
    const sockaddr_in address = loopback(port);
    if (::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        fail("connect");
}

bool Udp::send(const std::string& datagram) const {
    return ::send(descriptor_, datagram.data(), datagram.size(), 0) == static_cast<ssize_t>(datagram.size());
}

bool Udp::send_joined(const std::string& datagram, std::size_t count) const {
    std::string all;
    for (std::size_t i = 0; i < count; ++i)
        all += datagram;
    const int segment = static_cast<int>(datagram.size());
    if (::setsockopt(descriptor_, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0) return false;
    const bool sent = send(all);
    const int none = 0;
    ::setsockopt(descriptor_, IPPROTO_UDP, UDP_SEGMENT, &none, sizeof none);
    return sent;
}

std::string heartbeat(std::uint16_t source, std::uint64_t sequence) {
    std::string header(net::header_bytes, '\0');
    header.replace(0, 4, "PETF");
    header[4] = 1;
    header[6] = static_cast<char>(source >> 8);
    header[7] = static_cast<char>(source & 0xFF);
    for (std::size_t i = 0; i < 8; ++i)
        header[8 + i] = static_cast<char>(sequence >> (56 - 8 * i) & 0xFF);
    return header;
}

}  // namespace petacq::test

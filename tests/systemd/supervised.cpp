#include "tests/systemd/supervised.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "net/wire.hpp"

namespace petacq::test {

namespace {

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

ProcessOptions options_for(const Supervision& supervision) {
    ProcessOptions options;
    options.descriptors = supervision.sockets;
    if (supervision.notify != nullptr)
        options.environment.push_back("NOTIFY_SOCKET=" + supervision.notify->path());
    if (!supervision.sockets.empty()) {
        std::string names;
        for (std::size_t i = 0; i < supervision.sockets.size(); ++i)
            names += (i == 0 ? "" : ":") + supervision.socket_name;
        options.environment.push_back("LISTEN_FDS=" + std::to_string(supervision.sockets.size()));
        options.environment.push_back("LISTEN_FDNAMES=" + names);
    }
    options.environment.insert(options.environment.end(), supervision.environment.begin(),
                               supervision.environment.end());
    return options;
}

/// A shell sets LISTEN_PID: it keeps its process id when it executes the daemon.
std::vector<std::string> shell_arguments(const Site& site) {
    return {"-c",       R"([ -z "$LISTEN_FDS" ] || export LISTEN_PID=$$; exec "$@")",
            "sh",       PETACQD_PROGRAM,
            "--config", site.configuration()};
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
    close();
}

void NotifySocket::close() {
    if (descriptor_ != -1) ::close(std::exchange(descriptor_, -1));
}

const std::vector<std::string>& NotifySocket::messages() {
    if (descriptor_ == -1) return messages_;
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
    : notify_(supervision.notify),
      control_(site.socket()),
      process_("/bin/sh", shell_arguments(site), site.directory() / name, options_for(supervision)) {}

void Supervised::take_notifications() {
    if (notify_ != nullptr) notify_->messages();
}

int Supervised::wait() {
    eventually([this] {
        take_notifications();
        return !process_.running();
    });
    return process_.wait(std::chrono::seconds(0));
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

namespace {

pid_t thread_of(pid_t process, const std::string& name) {
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
        if (read_file(task.path() / "comm") == name + "\n") return std::stoi(task.path().filename());
    }
    throw std::runtime_error("no thread is named " + name);
}

}  // namespace

StoppedThread::StoppedThread(pid_t process, const std::string& name)
    : StoppedThread(process, thread_of(process, name)) {}

StoppedThread::StoppedThread(pid_t process, pid_t thread)
    : thread_(thread),
      state_("/proc/" + std::to_string(process) + "/task/" + std::to_string(thread) + "/syscall") {
    if (::ptrace(PTRACE_SEIZE, thread_, nullptr, nullptr) != 0) fail("ptrace");
    if (!eventually([this] { return stop_where_it_waits(); }))
        throw std::runtime_error("thread " + std::to_string(thread_) + " never waits");
}

StoppedThread StoppedThread::main_of(pid_t process) {
    return {process, process};
}

bool StoppedThread::stop_where_it_waits() const {
    if (::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) != 0) fail("ptrace");
    int status = 0;
    if (::waitpid(thread_, &status, __WALL) != thread_) fail("waitpid");
    // A thread elsewhere has no number of a system call: the file begins with -1.
    switch (std::stol(read_file(state_))) {
#ifdef __x86_64__
        case SYS_epoll_wait:
        case SYS_poll:
#endif
        case SYS_epoll_pwait:
        case SYS_ppoll:
        case SYS_futex:
        case SYS_restart_syscall:
        case SYS_recvmsg:
        case SYS_recvmmsg:
            return true;
        default:
            break;
    }
    if (::ptrace(PTRACE_CONT, thread_, nullptr, nullptr) != 0) fail("ptrace");
    return false;
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

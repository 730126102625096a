#include "tools/petbench/base/daemon_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace petacq::bench {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr daemon::ControlClient::Milliseconds longest_call{
    600'000};  // a run that ends may have much to write

/// Starts petacqd with the configuration of the directory, and with its standard error in `log` there.
pid_t start(const fs::path& program, const fs::path& directory, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {program.string(), "--config", (directory / "petacqd.json").string()});
    std::vector<char*> words;
    for (std::string& argument : arguments)
        words.push_back(argument.data());
    words.push_back(nullptr);
    const std::string log_file = (directory / "log").string();
    fs::remove(log_file);  // of an earlier daemon in the directory
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid > 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(127);
    const int out = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ::dup2(out, 2);
    ::execv(program.c_str(), words.data());
    ::_exit(127);
}

}  // namespace

fs::path petacqd_beside() {
    fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / "petacqd";
    if (!fs::exists(program)) throw std::runtime_error(program.string() + ": not found; build petacqd");
    return program;
}

int replay(const fs::path& directory, const fs::path& program, const fs::path& capture,
           const std::string& run) {
    const pid_t pid = start(program, directory, {"--replay", capture.string(), "--run", run});
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

DaemonProcess::DaemonProcess(json configuration, const fs::path& directory, const fs::path& program)
    : directory_(directory) {
    configuration["control"]["socket"] = "control.sock";
    std::ofstream(directory_ / "petacqd.json") << configuration;
    pid_ = start(program, directory_, {});
    try {
        wait_until_ready();
        client_ = std::make_unique<daemon::ControlClient>(socket());
    } catch (...) {
        end();
        throw;
    }
}

DaemonProcess::~DaemonProcess() {
    end();
}

void DaemonProcess::wait_until_ready() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (log().find(" ready: ") == std::string::npos) {
        siginfo_t ended{};
        ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT);
        if (ended.si_pid != 0 || std::chrono::steady_clock::now() > deadline)
            throw std::runtime_error("petacqd does not start: " + log());
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

void DaemonProcess::end() const {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
}

std::string DaemonProcess::log() const {
    std::ifstream in(directory_ / "log");
    return {std::istreambuf_iterator<char>(in), {}};
}

std::uint16_t DaemonProcess::http_port() const {
    const std::string text = log();
    const std::size_t at = text.find(", port ", text.find("http: listening"));
    return static_cast<std::uint16_t>(std::stoul(text.substr(at + 7)));
}

std::vector<std::uint16_t> DaemonProcess::ports() {
    std::vector<std::uint16_t> found;
    const json status = call("status");
    for (const json& socket : status.at("sockets"))
        found.push_back(socket.at("port").get<std::uint16_t>());
    return found;
}

json DaemonProcess::call(std::string_view method) {
    return call(method, json::object());
}

json DaemonProcess::call(std::string_view method, const json& parameters) {
    return client_->call(method, parameters, longest_call);
}

}  // namespace petacq::bench

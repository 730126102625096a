#include "tests/end_to_end/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace petacq::test {

TemporaryDirectory::TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "petacq-e2e-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string read_file(const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
}

void write_file(const std::filesystem::path& file, const std::string& content) {
    std::ofstream(file, std::ios::binary) << content;
}

Process::Process(const std::string& program, std::vector<std::string> arguments,
                 const std::filesystem::path& output)
    : output_(output) {
    arguments.insert(arguments.begin(), program);
    std::vector<char*> argv;
    for (std::string& argument : arguments)
        argv.push_back(argument.data());
    argv.push_back(nullptr);
    const std::string out = output.string() + ".out";
    const std::string err = output.string() + ".err";
    constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND;
    posix_spawn_file_actions_t actions{};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), flags, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), flags, 0600);
    const int failed = ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw std::system_error(failed, std::generic_category(), program);
}

Process::~Process() {
    if (ended_) return;
    ::kill(pid_, SIGKILL);
    reap(0);
}

void Process::reap(int flags) {
    if (ended_) return;
    int status = 0;
    pid_t got = 0;
    do
        got = ::waitpid(pid_, &status, flags);
    while (got < 0 && errno == EINTR);
    if (got != pid_) return;
    ended_ = true;
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool Process::running() {
    reap(WNOHANG);
    return !ended_;
}

int Process::wait(std::chrono::seconds limit) {
    if (!eventually([this] { return !running(); }, limit)) {
        throw std::runtime_error("process " + std::to_string(pid_) + " does not end; it said: " + errors());
    }
    return status_;
}

void Process::signal(int number) const {
    if (!ended_) ::kill(pid_, number);
}

void Process::limit_file_size(std::uint64_t bytes) const {
    const rlimit limit{bytes, RLIM_INFINITY};
    if (::prlimit(pid_, RLIMIT_FSIZE, &limit, nullptr) != 0) {
        throw std::system_error(errno, std::generic_category(), "prlimit");
    }
}

void Process::lift_file_size_limit() const {
    limit_file_size(RLIM_INFINITY);
}

Outcome run_program(const std::string& program, const std::vector<std::string>& arguments) {
    const TemporaryDirectory directory;
    Process process(program, arguments, directory / "output");
    Outcome outcome;
    outcome.status = process.wait();
    outcome.out = process.output();
    outcome.err = process.errors();
    return outcome;
}

}  // namespace petacq::test

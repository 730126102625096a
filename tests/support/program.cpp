#include "tests/support/program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <system_error>

#include "tests/support/temporary_directory.hpp"

namespace petacq::test {

namespace {

/// The actions of posix_spawn in the child before it executes the program.
class FileActions {
  public:
    FileActions() { posix_spawn_file_actions_init(&actions_); }
    ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
    FileActions(const FileActions&) = delete;
    FileActions& operator=(const FileActions&) = delete;

    void open(int descriptor, const std::string& file, int flags) {
        posix_spawn_file_actions_addopen(&actions_, descriptor, file.c_str(), flags, 0600);
    }
    void copy(int from, int to) { posix_spawn_file_actions_adddup2(&actions_, from, to); }
    void close(int descriptor) { posix_spawn_file_actions_addclose(&actions_, descriptor); }
    /// Places the descriptors at `first` and above.
    void pass(const std::vector<int>& descriptors, int first) {
        // Moves them to high numbers first: a descriptor may occupy another one's place.
        constexpr int aside = 1000;
        const int count = static_cast<int>(descriptors.size());
        for (int i = 0; i < count; ++i)
            copy(descriptors[static_cast<std::size_t>(i)], aside + i);
        for (int i = 0; i < count; ++i) {
            copy(aside + i, first + i);
            close(aside + i);
        }
    }
    [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

  private:
    posix_spawn_file_actions_t actions_{};
};

std::string name_of(const std::string& variable) {
    return variable.substr(0, variable.find('='));
}

std::vector<std::string> environment_for(const ProcessOptions& options) {
    std::vector<std::string> dropped = options.unset;
    for (const std::string& variable : options.environment)
        dropped.push_back(name_of(variable));
    std::vector<std::string> all = options.environment;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        if (std::find(dropped.begin(), dropped.end(), name_of(*variable)) == dropped.end())
            all.emplace_back(*variable);
    }
    return all;
}

/// A null-terminated array that points into `strings`.
std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> out;
    for (std::string& text : strings)
        out.push_back(text.data());
    out.push_back(nullptr);
    return out;
}

int status_from(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

Process::Process(const std::string& program, const std::vector<std::string>& arguments,
                 const std::filesystem::path& output, const ProcessOptions& options)
    : output_(output) {
    constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND;
    FileActions actions;
    posix_spawnattr_t attributes{};
    posix_spawnattr_init(&attributes);
    if (options.terminal.empty()) {
        actions.open(0, "/dev/null", O_RDONLY);
        actions.open(1, output.string() + ".out", flags);
    } else {
        // The first terminal that the leader of a session opens becomes its controlling terminal.
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
        actions.open(0, options.terminal, O_RDWR);
        actions.copy(0, 1);
    }
    actions.open(2, output.string() + ".err", flags);
    actions.pass(options.descriptors, 3);

    std::vector<std::string> words = {program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<std::string> environment = environment_for(options);
    const int error = ::posix_spawn(&pid_, program.c_str(), actions.get(), &attributes,
                                    pointers(words).data(), pointers(environment).data());
    posix_spawnattr_destroy(&attributes);
    if (error != 0) throw std::system_error(error, std::generic_category(), program);
}

Process::~Process() {
    if (ended_) return;
    ::kill(pid_, SIGKILL);
    reap(0);
}

void Process::reap(int flags) {
    if (ended_) return;
    int status = 0;
    pid_t reaped = 0;
    do
        reaped = ::waitpid(pid_, &status, flags);
    while (reaped < 0 && errno == EINTR);
    if (reaped != pid_) return;
    ended_ = true;
    status_ = status_from(status);
}

bool Process::running() {
    reap(WNOHANG);
    return !ended_;
}

int Process::wait(std::chrono::seconds limit) {
    if (!eventually([this] { return !running(); }, limit)) {
        throw std::runtime_error("process " + std::to_string(pid_) +
                                 " does not end; its errors: " + errors());
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

Outcome run_program(const std::string& program, const std::vector<std::string>& arguments,
                    const ProcessOptions& options) {
    const TemporaryDirectory directory;
    Process process(program, arguments, directory / "output", options);
    Outcome outcome;
    outcome.status = process.wait(options.limit);
    outcome.out = process.output();
    outcome.err = process.errors();
    return outcome;
}

Outcome shell(const std::string& command) {
    return run_program("/bin/sh", {"-c", "exec 2>&1; " + command});
}

}  // namespace petacq::test

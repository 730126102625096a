// Programs run by tests: in the background, to their end, or by the shell.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/eventually.hpp"
#include "tests/support/files.hpp"

namespace petacq::test {

/// Deviations from how a program runs by default: with the environment of the test and without input.
struct ProcessOptions {
    /// NAME=VALUE, in place of variables of the same name.
    std::vector<std::string> environment = {};
    /// Names of the variables that the program does not inherit.
    std::vector<std::string> unset = {};
    /// Path of the terminal for input and output, which becomes the controlling terminal. Empty: no input,
    /// and the output goes to a file.
    std::string terminal = {};
    /// Descriptors that the program receives as 3, 4, ... and that stay open in the test.
    std::vector<int> descriptors = {};
    /// How long `run_program` waits. The usual limit is below that of CTest, which would leave the program
    /// running.
    std::chrono::seconds limit{240};
};

/// A program that runs alongside the test.
class Process {
  public:
    /// Starts it. Standard output goes to `output`.out, standard error to `output`.err. Throws
    /// std::system_error.
    Process(const std::string& program, const std::vector<std::string>& arguments,
            const std::filesystem::path& output, const ProcessOptions& options = {});
    /// Kills the program if it still runs.
    ~Process();
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    /// Waits for the end of the program. Returns its exit status, or minus the number of the signal that
    /// killed it. Throws std::runtime_error if the program does not end in time.
    int wait(std::chrono::seconds limit = patience);
    /// False once the program has ended. Does not wait.
    [[nodiscard]] bool running();
    void signal(int number) const;
    /// Limits the size of the files that the program writes (the soft limit, bytes).
    void limit_file_size(std::uint64_t bytes) const;
    void lift_file_size_limit() const;

    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] std::string output() const { return read_file(output_.string() + ".out"); }
    [[nodiscard]] std::string errors() const { return read_file(output_.string() + ".err"); }

  private:
    void reap(int flags);
    std::filesystem::path output_;
    pid_t pid_ = -1;
    bool ended_ = false;
    int status_ = 0;
};

struct Outcome {
    int status = -1;  ///< exit status, or minus the number of the signal that killed the program
    std::string out;
    std::string err;
};

/// Runs a program to its end.
Outcome run_program(const std::string& program, const std::vector<std::string>& arguments,
                    const ProcessOptions& options = {});

/// Runs a shell command to its end. `out` holds standard output and standard error, in the order of writing.
Outcome shell(const std::string& command);

/// The path as one word of a shell command, with spaces around it.
inline std::string quoted(const std::filesystem::path& path) {
    return " '" + path.string() + "' ";
}

}  // namespace petacq::test

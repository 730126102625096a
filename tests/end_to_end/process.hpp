// Programs as processes, with their output in files; temporary directories; waiting for things to happen.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace petacq::test {

/// Enough for a machine that does much else; only a broken program needs it.
inline constexpr std::chrono::seconds patience{60};

/// Waits until the condition holds; false when it does not in time.
template <class Condition>
bool eventually(Condition condition, std::chrono::milliseconds limit = patience) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
}

/// A directory of its own that goes away with it.
class TemporaryDirectory {
  public:
    TemporaryDirectory();
    ~TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  private:
    std::filesystem::path path_;
};

std::string read_file(const std::filesystem::path& file);
void write_file(const std::filesystem::path& file, const std::string& content);
inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

class Process {
  public:
    /// `output`.out and `output`.err take what it prints. Throws std::runtime_error.
    Process(const std::string& program, std::vector<std::string> arguments,
            const std::filesystem::path& output);
    /// Kills what still runs.
    ~Process();
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    /// Its exit status; minus the signal that ended it. Throws std::runtime_error when it does not end.
    int wait(std::chrono::seconds limit = patience);
    /// Has not ended, as far as can be told without waiting.
    [[nodiscard]] bool running();
    void signal(int number) const;
    /// Soft limit for the size of its files, bytes.
    void limit_file_size(std::uint64_t bytes) const;
    void lift_file_size_limit() const;

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
    int status = -1;
    std::string out;
    std::string err;
};
/// To its end.
Outcome run_program(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace petacq::test

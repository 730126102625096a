// A line on the terminal that shows how far a long operation has come and how long it will still take.
// Only on a terminal (standard error).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace petacq::daemon {

/// The unit in which an operation counts its progress.
enum class ProgressUnit : std::uint8_t { bytes, steps };

/// "verifying a.plm: 25 % of 8.0 GB, 500 MB/s, 12 s left"; for steps, without size and rate. `start` is the
/// count at which the operation started, `done` the count it reached after `seconds`.
std::string progress_text(const std::string& what, std::uint64_t done, std::uint64_t start,
                          std::uint64_t total, double seconds, ProgressUnit unit = ProgressUnit::bytes);

/// Not thread-safe.
class ProgressLine {
  public:
    ProgressLine(std::string what, std::uint64_t total, ProgressUnit unit = ProgressUnit::bytes);
    /// Clears the line.
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    /// Rewrites the line, at most a few times a second. The rate is measured from the first call on.
    void show(std::uint64_t done);
    /// Makes room for output; the next show() writes the line again.
    void clear();

  private:
    std::string what_;
    std::uint64_t total_;
    ProgressUnit unit_;
    bool terminal_;
    bool shown_ = false;
    std::optional<std::uint64_t> start_count_;
    std::chrono::steady_clock::time_point start_;
    std::chrono::steady_clock::time_point last_;
};

}  // namespace petacq::daemon

// A line on the terminal that says how far long work is and how long it will go on; nothing when standard
// error is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace petacq::petlm {

/// What is counted.
enum class ProgressUnit : std::uint8_t { bytes, steps };

/// "verifying a.plm: 25 % of 8.0 GB, 500 MB/s, 12 s left"; of steps without size and rate. Of what is done,
/// those after `begun_at` took the seconds.
std::string progress_text(const std::string& what, std::uint64_t done, std::uint64_t begun_at,
                          std::uint64_t total, double seconds, ProgressUnit unit = ProgressUnit::bytes);

/// One thread at a time.
class Progress {
  public:
    Progress(std::string what, std::uint64_t total, ProgressUnit unit = ProgressUnit::bytes);
    /// Takes the line away.
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    /// At most a few times a second. What was done before the first call is taken to have cost no time.
    void show(std::uint64_t done);

  private:
    std::string what_;
    std::uint64_t total_;
    ProgressUnit unit_;
    bool terminal_;
    bool shown_ = false;
    std::optional<std::uint64_t> begun_at_;
    std::chrono::steady_clock::time_point start_;
    std::chrono::steady_clock::time_point last_;
};

}  // namespace petacq::petlm

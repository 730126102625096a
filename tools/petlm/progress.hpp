// A line on the terminal that says how far long work is; nothing when standard error is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace petacq::petlm {

class Progress {
  public:
    enum class Unit : std::uint8_t { bytes, steps };
    Progress(std::string what, std::uint64_t total, Unit unit = Unit::bytes);
    /// Takes the line away.
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    void show(std::uint64_t done);

  private:
    std::string what_;
    std::uint64_t total_;
    Unit unit_;
    bool terminal_;
    bool shown_ = false;
    std::chrono::steady_clock::time_point start_;
    std::chrono::steady_clock::time_point last_;
};

}  // namespace petacq::petlm

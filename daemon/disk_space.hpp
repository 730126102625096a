// Room on the disk, and for how long it lasts.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>

namespace petacq::daemon {

struct DiskSpace {
    std::uint64_t free_bytes = 0;  ///< for us: without what is kept for the superuser
    std::uint64_t total_bytes = 0;
};

/// Of the file system that holds `directory`; nothing when it cannot be told.
std::optional<DiskSpace> disk_space(const std::filesystem::path& directory);

/// The rate of a counter of bytes over about the last ten seconds: blocks leave in bursts.
class WriteRate {
  public:
    static constexpr std::chrono::seconds over{10};

    /// A counter that goes back is another one.
    void observe(std::uint64_t bytes, std::chrono::steady_clock::time_point now);
    void clear() { readings_.clear(); }
    /// 0 before there are two readings.
    [[nodiscard]] double per_second() const;

  private:
    struct Reading {
        std::chrono::steady_clock::time_point taken;
        std::uint64_t bytes;
    };
    std::deque<Reading> readings_;
};

/// What the status says of the disk.
struct DiskStatus {
    std::optional<DiskSpace> space;
    double write_bytes_per_s = 0;
    /// Until it is full, at that rate; absent when nothing is written.
    [[nodiscard]] std::optional<double> time_left_s() const;
};

}  // namespace petacq::daemon

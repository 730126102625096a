// Free space on the disk, and how long it will last.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>

namespace petacq::daemon {

struct DiskSpace {
    std::uint64_t free_bytes = 0;  ///< without the space reserved for the superuser
    std::uint64_t total_bytes = 0;
};

/// The space of the file system that holds `directory`; absent when the system does not tell.
std::optional<DiskSpace> disk_space(const std::filesystem::path& directory);

/// The rate of a byte counter over about ten seconds, because blocks are written in bursts.
class WriteRate {
  public:
    static constexpr std::chrono::seconds over{10};

    /// A smaller value than before starts a new counter.
    void observe(std::uint64_t bytes, std::chrono::steady_clock::time_point now);
    void clear() { readings_.clear(); }
    /// 0 before the second reading.
    [[nodiscard]] double per_second() const;

  private:
    struct SpaceReading {
        std::chrono::steady_clock::time_point taken;
        std::uint64_t bytes;
    };
    std::deque<SpaceReading> readings_;
};

/// The disk as the status shows it.
struct DiskStatus {
    std::optional<DiskSpace> space;
    double write_bytes_per_s = 0;
    /// Time until the disk is full at that rate; absent when nothing is written.
    [[nodiscard]] std::optional<double> time_left_s() const;
};

}  // namespace petacq::daemon

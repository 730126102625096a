#include "daemon/space/disk_space.hpp"

#include <sys/statvfs.h>

namespace petacq::daemon {

std::optional<DiskSpace> disk_space(const std::filesystem::path& directory) {
    struct statvfs s {};
    if (::statvfs(directory.c_str(), &s) != 0) return {};
    return DiskSpace{std::uint64_t{s.f_bavail} * s.f_frsize, std::uint64_t{s.f_blocks} * s.f_frsize};
}

void WriteRate::observe(std::uint64_t bytes, std::chrono::steady_clock::time_point now) {
    if (!readings_.empty() && bytes < readings_.back().bytes) clear();
    readings_.push_back({now, bytes});
    while (readings_.size() > 2 && now - readings_[1].taken >= over)
        readings_.pop_front();
}

double WriteRate::per_second() const {
    if (readings_.size() < 2) return 0;
    const double seconds =
        std::chrono::duration<double>(readings_.back().taken - readings_.front().taken).count();
    return seconds > 0 ? static_cast<double>(readings_.back().bytes - readings_.front().bytes) / seconds : 0;
}

std::optional<double> DiskStatus::time_left_s() const {
    if (!space || write_bytes_per_s <= 0) return {};
    return static_cast<double>(space->free_bytes) / write_bytes_per_s;
}

}  // namespace petacq::daemon

#include "daemon/preflight/disk.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "daemon/control/access.hpp"
#include "daemon/space/disk_space.hpp"
#include "daemon/system/quantity_text.hpp"
#include "gpu/base/records.hpp"
#include "net/wire.hpp"

namespace petacq::daemon {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_written = std::size_t{256} << 20;
constexpr std::size_t piece_bytes = std::size_t{4} << 20;
constexpr std::chrono::seconds longest_measurement{2};
/// A measurement must not fill a disk that is nearly full.
constexpr std::uint64_t min_room = 4 * max_written;
/// A disk must be this much faster than what it has to take: its speed varies.
constexpr double margin = 1.5;
/// A packet in a capture has its record, the Ethernet, IPv4 and UDP headers and a payload of 1472 bytes.
constexpr double capture_overhead = (16.0 + 14 + 20 + 8) / 1472;

struct Mount {
    std::string device;
    std::string type;
};

/// From /proc/self/mountinfo: "id parent major:minor root point options ... - type source options".
std::optional<Mount> mount_of(dev_t device) {
    const std::string wanted = fmt::format("{}:{}", major(device), minor(device));
    std::ifstream in("/proc/self/mountinfo");
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string id, parent, numbers, word;
        words >> id >> parent >> numbers;
        if (numbers != wanted) continue;
        while (words >> word && word != "-") {
        }
        Mount mount;
        if (words >> mount.type >> mount.device) return mount;
    }
    return std::nullopt;
}

class TestFile {
  public:
    /// The file has no name: it is gone when it is closed, whatever happens to this process.
    explicit TestFile(const fs::path& directory)
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg)
        : descriptor_(::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600)) {
        if (descriptor_ >= 0) return;
        // A file system without unnamed files.
        std::string name = (directory / ".petacqd-check-XXXXXX").string();
        descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
        if (descriptor_ < 0) fail();
        ::unlink(name.c_str());
    }
    TestFile(const TestFile&) = delete;
    TestFile& operator=(const TestFile&) = delete;
    ~TestFile() { ::close(descriptor_); }

    std::size_t write(const std::vector<std::byte>& piece) {
        const ssize_t written = ::write(descriptor_, piece.data(), piece.size());
        if (written < 0) fail();
        return static_cast<std::size_t>(written);
    }
    void sync() {
        if (::fdatasync(descriptor_) != 0) fail();
    }

  private:
    [[noreturn]] static void fail() { throw std::system_error(errno, std::generic_category()); }
    int descriptor_;
};

/// Not all zero: some file systems write no zeros.
std::vector<std::byte> noise() {
    std::vector<std::byte> bytes(piece_bytes);
    std::uint64_t state = 88172645463325252U;
    for (std::byte& byte : bytes) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        byte = static_cast<std::byte>(state >> 56);
    }
    return bytes;
}

Finding not_writable(const fs::path& directory, uid_t owner, const std::string& why) {
    const std::string text =
        directory.string() + ": this user (" + user_name(::geteuid()) + ") cannot write: " + why;
    const bool others = owner != ::geteuid() && owner != 0;
    if (others && why != std::generic_category().message(EROFS)) {
        return {Level::note, "data directory", text,
                "test as its owner: sudo -u " + user_name(owner) + " petacqd --check ..."};
    }
    return {Level::problem, "data directory", text,
            "sudo install -d -o petacq -g petacq -m 750 " + directory.string() +
                "; on a file system that is mounted read-only: sudo mount -o remount,rw ..."};
}

Finding speed_finding(double speed, double needed, const FrameRate& rate) {
    constexpr const char* subject = "disk speed";
    std::string text = scaled_text(speed, "B/s");
    if (!rate.asked)
        return {Level::good, subject, text + " (--rate FRAMES/S compares it with what a run needs)", ""};
    text += fmt::format("; at {:.3g} frames/s a run writes up to {}", rate.per_s, scaled_text(needed, "B/s"));
    if (speed >= margin * needed) return {Level::good, subject, text, ""};
    return {
        Level::warning, subject, text,
        "a faster disk for data_dir; or write less: listmode.write_raw false, listmode.write_singles false, "
        "listmode.compression"};
}

Finding room_finding(const config::Configuration& c, const DiskSpace& space, double needed,
                     const FrameRate& rate) {
    constexpr const char* subject = "disk space";
    const auto reserve = static_cast<double>(c.health.min_disk_free_bytes);
    const double room = std::max(0.0, static_cast<double>(space.free_bytes) - reserve);
    const double seconds = needed > 0 ? room / needed : 0;
    const std::string text = fmt::format(
        "{} free of {}: {} at {:.3g} frames/s and {}, less health.min_disk_free_bytes",
        scaled_text(static_cast<double>(space.free_bytes), "B"),
        scaled_text(static_cast<double>(space.total_bytes), "B"),
        needed > 0 ? "at least " + duration_text(seconds) : "no end", rate.per_s, scaled_text(needed, "B/s"));
    const std::string fix =
        "petctl runs lists the runs; move those that are no longer needed to another disk, or set data_dir";
    if (room <= 0) return {Level::warning, subject, text, fix};
    if (rate.asked && needed > 0 && seconds < c.health.min_disk_time_s)
        return {Level::warning, subject, text, fix};
    return {Level::good, subject, text, ""};
}

}  // namespace

double max_bytes_per_s(const config::Configuration& c, double frames_per_s) {
    double bytes = 0;
    if (c.listmode.write_singles) bytes += frames_per_s * sizeof(gpu::Single);
    if (c.listmode.write_coincidences) {
        const double kinds = c.coincidence.delay_ticks ? 2 : 1;  // prompts and delayeds
        bytes += kinds * frames_per_s / 2 * sizeof(gpu::Coincidence);
    }
    if (c.finds_triples()) {
        // The estimate assumes that every frame is one of the three singles of a triple, and of one only.
        const double kinds = c.gammas->delay_ticks ? 2 : 1;
        bytes += kinds * frames_per_s / 3 * sizeof(gpu::Triple);
    }
    if (c.listmode.write_raw) bytes += frames_per_s * net::frame_bytes * (1 + capture_overhead);
    return bytes;
}

double measure_write_speed(const fs::path& directory) {
    using Clock = std::chrono::steady_clock;
    const std::vector<std::byte> piece = noise();
    TestFile file(directory);
    const auto start = Clock::now();
    std::size_t written = 0;
    // Synced in between: otherwise two seconds of writing could become minutes of syncing.
    for (std::size_t unsynced = 0; written < max_written && Clock::now() - start < longest_measurement;) {
        const std::size_t now = file.write(piece);
        written += now;
        unsynced += now;
        if (unsynced < 8 * piece_bytes) continue;
        file.sync();
        unsynced = 0;
    }
    file.sync();
    return static_cast<double>(written) / std::chrono::duration<double>(Clock::now() - start).count();
}

Findings check_disk(const config::Configuration& configuration, const FrameRate& rate, bool daemon_running) {
    Findings findings;
    const fs::path& directory = configuration.data_dir;
    struct stat status {};
    if (::stat(directory.c_str(), &status) != 0)
        return {{Level::problem, "data directory",
                 directory.string() + ": " + std::generic_category().message(errno),
                 "sudo install -d -o petacq -g petacq -m 750 " + directory.string()}};
    const auto mount = mount_of(status.st_dev);
    std::string where = directory.string() + ": writable";
    if (mount) where += ", on " + mount->device + " (" + mount->type + ")";
    const bool in_memory = mount && (mount->type == "tmpfs" || mount->type == "ramfs");
    const auto space = disk_space(directory);
    const double needed = max_bytes_per_s(configuration, rate.per_s);
    if (::access(directory.c_str(), W_OK | X_OK) != 0) {
        findings.push_back(not_writable(directory, status.st_uid, std::generic_category().message(errno)));
    } else if (in_memory) {
        findings.push_back({Level::warning, "data directory", where + ": in memory, gone when the host stops",
                            "set data_dir to a directory on a disk"});
    } else {
        findings.push_back({Level::good, "data directory", where, ""});
    }
    const Level level = findings.back().level;
    const bool writable = level == Level::good || level == Level::warning;
    if (daemon_running) {
        findings.push_back({Level::note, "disk speed", "not measured while a petacqd is running", ""});
    } else if (writable && space && space->free_bytes >= min_room) {
        try {
            findings.push_back(speed_finding(measure_write_speed(directory), needed, rate));
        } catch (const std::system_error& error) {
            findings.push_back(not_writable(directory, status.st_uid, error.code().message()));
        }
    } else if (writable) {
        findings.push_back({Level::note, "disk speed",
                            "not measured: less than " + scaled_text(double{min_room}, "B") + " free", ""});
    }
    if (space) {
        findings.push_back(room_finding(configuration, *space, needed, rate));
    } else {
        findings.push_back({Level::note, "disk space", "the file system does not tell", ""});
    }
    return findings;
}

}  // namespace petacq::daemon

// Files below the data directory, and those of the host that would make one run differ from the next.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "tests/simulation/preload/intercept.hpp"

using namespace petacq::simulation;

namespace petacq::simulation {
void forget_counter(int fd);
}

namespace {

using Call = World::DiskCall;

bool on_disk(const char* path) {
    return world != nullptr && world->disk.holds(path);
}

/// Waits as long as the call takes. False: it fails, with errno.
bool works(Call call) {
    const int error = world->disk_call(call);
    if (error != 0) errno = error;
    return error == 0;
}

int noted(int result) {
    const int error = errno;
    world->scheduler.note(static_cast<std::uint64_t>(result));
    errno = error;
    return result;
}

/// A sync that the disk says it has done.
template <class Sync>
int sync_file(int fd, const Sync& sync) {
    if (world == nullptr || !world->disk.has(fd)) return sync(fd);
    if (!works(Call::sync)) {
        const int error = errno;
        std::error_code ignored;
        const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), ignored);
        world->record.event(world->scheduler.now_ns(), "sync_failed", path.string());
        errno = error;
        return -1;
    }
    world->disk.synced(fd);
    return 0;
}

}  // namespace

extern "C" {

PETACQ_INTERCEPT int open(const char* path, int flags, ...) {
    PETACQ_REAL(open);
    const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    va_list list;
    va_start(list, flags);
    const mode_t mode = makes ? va_arg(list, mode_t) : 0;
    va_end(list);
    const bool ours = on_disk(path) && ((flags & (O_WRONLY | O_RDWR | O_DIRECTORY)) != 0);
    if (!ours) return real_open(path, flags, mode);
    if (!works(Call::names)) return -1;
    struct stat s {};
    const bool is_new = (flags & O_CREAT) != 0 && ::stat(path, &s) != 0;
    // Emptied below, where it is logged.
    const int fd = real_open(path, flags & ~O_TRUNC, mode);
    if (fd < 0) return fd;
    world->disk.opened(fd, path, is_new);
    if ((flags & O_TRUNC) != 0 && !is_new && ::ftruncate(fd, 0) != 0) return -1;
    return noted(fd);
}
/// What programs with checks of buffers (_FORTIFY_SOURCE) call in its place.
PETACQ_INTERCEPT int __open_2(const char* path, int flags) {  // NOLINT(bugprone-reserved-identifier)
    return open(path, flags);
}

PETACQ_INTERCEPT int close(int fd) {
    PETACQ_REAL(close);
    if (world != nullptr) {
        forget_counter(fd);
        world->disk.closed(fd);
        world->network.closed(fd);
        world->scheduler.readiness.closed(fd);
        world->scheduler.changed();
    }
    return real_close(fd);
}

PETACQ_INTERCEPT ssize_t writev(int fd, const iovec* pieces, int count) {
    PETACQ_REAL(writev);
    if (world == nullptr || !world->disk.has(fd)) return real_writev(fd, pieces, count);
    if (!works(Call::write)) return -1;
    world->disk.will_write(fd, ::lseek(fd, 0, SEEK_CUR), pieces, count);
    return noted(static_cast<int>(real_writev(fd, pieces, count)));
}

PETACQ_INTERCEPT int ftruncate(int fd, off_t size) noexcept {
    PETACQ_REAL(ftruncate);
    if (world == nullptr || !world->disk.has(fd)) return real_ftruncate(fd, size);
    if (!works(Call::names)) return -1;
    world->disk.will_truncate(fd, size);
    return noted(real_ftruncate(fd, size));
}

PETACQ_INTERCEPT int posix_fallocate(int fd, off_t at, off_t size) {
    PETACQ_REAL(posix_fallocate);
    if (world == nullptr || !world->disk.has(fd)) return real_posix_fallocate(fd, at, size);
    if (!works(Call::write)) return errno;
    // Without taking memory for it.
    struct stat s {};
    if (::fstat(fd, &s) != 0 || s.st_size >= at + size) return noted(0);
    PETACQ_REAL(ftruncate);
    world->disk.will_truncate(fd, at + size);
    return noted(real_ftruncate(fd, at + size) == 0 ? 0 : errno);
}

PETACQ_INTERCEPT int fdatasync(int fd) {
    PETACQ_REAL(fdatasync);
    return sync_file(fd, real_fdatasync);
}

PETACQ_INTERCEPT int fsync(int fd) {
    PETACQ_REAL(fsync);
    return sync_file(fd, real_fsync);
}

PETACQ_INTERCEPT int sync_file_range(int fd, off_t at, off_t size, unsigned flags) {
    PETACQ_REAL(sync_file_range);
    if (world == nullptr || !world->disk.has(fd)) return real_sync_file_range(fd, at, size, flags);
    return 0;
}

PETACQ_INTERCEPT int mkdir(const char* path, mode_t mode) noexcept {
    PETACQ_REAL(mkdir);
    if (!on_disk(path)) return real_mkdir(path, mode);
    if (!works(Call::names)) return -1;
    const int result = real_mkdir(path, mode);
    if (result == 0) world->disk.made(path);
    return noted(result);
}

PETACQ_INTERCEPT int rename(const char* from, const char* to) noexcept {
    PETACQ_REAL(rename);
    if (!on_disk(from)) return real_rename(from, to);
    if (!works(Call::names)) return -1;
    world->disk.will_rename(from, to);
    return noted(real_rename(from, to));
}

PETACQ_INTERCEPT int renameat2(int from_in, const char* from, int to_in, const char* to,
                               unsigned flags) noexcept {
    PETACQ_REAL(renameat2);
    if (!on_disk(from)) return real_renameat2(from_in, from, to_in, to, flags);
    if (!works(Call::names)) return -1;
    struct stat s {};
    if (::stat(to, &s) != 0) world->disk.will_rename(from, to);
    return noted(real_renameat2(from_in, from, to_in, to, flags));
}

PETACQ_INTERCEPT int link(const char* from, const char* to) noexcept {
    PETACQ_REAL(link);
    if (!on_disk(to)) return real_link(from, to);
    if (!works(Call::names)) return -1;
    const int result = real_link(from, to);
    if (result == 0) world->disk.made(to);
    return noted(result);
}

PETACQ_INTERCEPT int unlink(const char* path) noexcept {
    PETACQ_REAL(unlink);
    if (!on_disk(path)) return real_unlink(path);
    if (!works(Call::names)) return -1;
    world->disk.will_remove(path);
    return noted(real_unlink(path));
}

PETACQ_INTERCEPT int statvfs(const char* __restrict path, struct statvfs* __restrict out) noexcept {
    PETACQ_REAL(statvfs);
    const int result = real_statvfs(path, out);
    if (result != 0 || !on_disk(path)) return result;
    // The same room on every machine.
    out->f_blocks = (std::uint64_t{100} << 30U) / out->f_frsize;
    out->f_bavail = out->f_bfree =
        world->scheduler.now_ns() < world->disk.full_until_ns ? 0 : out->f_blocks / 2;
    return 0;
}

// The kernel's counters of the network belong to the whole host: they are not there.
PETACQ_INTERCEPT FILE* fopen64(const char* __restrict path, const char* __restrict mode) {
    PETACQ_REAL(fopen64);
    if (world != nullptr && std::string(path).find("/net/") != std::string::npos) {
        errno = ENOENT;
        return nullptr;
    }
    return real_fopen64(path, mode);
}

}  // extern "C"

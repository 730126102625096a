#include "daemon/system/file.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

#include "config/base/file.hpp"

namespace petacq::daemon {

namespace {

[[noreturn]] void throw_errno(const std::filesystem::path& path, const std::string& what, int error) {
    throw std::system_error(error, std::generic_category(), path.string() + ": " + what);
}

int open_for_writing(const std::filesystem::path& path, IfExists if_exists, mode_t mode) {
    const bool must_be_new = if_exists != IfExists::overwrite;
    if (if_exists == IfExists::discard) ::unlink(path.c_str());
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (must_be_new ? O_EXCL | O_NOFOLLOW : O_TRUNC);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg)
    const int descriptor = ::open(path.c_str(), flags, mode);
    if (descriptor < 0)
        throw_errno(path, must_be_new ? "cannot be created" : "cannot be opened for writing", errno);
    return descriptor;
}

/// The pieces without their first `bytes`, and without empty ones in front.
std::span<iovec> without_front(std::span<iovec> pieces, std::size_t bytes) {
    while (!pieces.empty() && bytes >= pieces.front().iov_len) {
        bytes -= pieces.front().iov_len;
        pieces = pieces.subspan(1);
    }
    if (bytes == 0) return pieces;
    assert(!pieces.empty() && "more written than asked for");
    iovec& first = pieces.front();
    first.iov_base = static_cast<std::byte*>(first.iov_base) + bytes;
    first.iov_len -= bytes;
    return pieces;
}

/// Some file systems cannot sync, and a pipe cannot either: there is nothing more to do then.
int sync_error(const std::function<int(int)>& sync, int descriptor) {
    int result = 0;
    do
        result = sync(descriptor);
    while (result != 0 && errno == EINTR);
    return result == 0 || errno == EINVAL ? 0 : errno;
}

void sync_path(const std::filesystem::path& path, int flags, const std::function<int(int)>& sync) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg)
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
    if (descriptor < 0) throw_errno(path, "cannot be opened", errno);
    const int error = sync_error(sync, descriptor);
    ::close(descriptor);
    if (error != 0) throw_errno(path, "sync failed", error);
}

/// Renames a file unless `to` exists.
int rename_to_new(const char* from, const char* to) {
    const int result = ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
    if (result == 0 || (errno != EINVAL && errno != ENOSYS)) return result;
    // Network file systems lack it, but have links.
    if (::link(from, to) != 0) return -1;
    return ::unlink(from);
}

}  // namespace

FileCalls& file_calls() {
    static FileCalls calls{::writev, ::fdatasync, ::posix_fallocate, ::rename, ::fsync};
    return calls;
}

FileIdentity FileIdentity::of(const std::filesystem::path& path) {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) throw_errno(path, "cannot be examined", errno);
    if (!S_ISREG(found.st_mode)) return {path, found.st_dev, 0, 0};
    return {path, found.st_dev, found.st_ino, static_cast<std::uint64_t>(found.st_size)};
}

void FileIdentity::check() const {
    if (inode == 0) return;
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) {
        const int error = errno;
        throw_errno(path,
                    error == ENOENT ? "another program has removed or renamed it" : "cannot be examined",
                    error);
    }
    if (found.st_dev != device || found.st_ino != inode)
        throw_errno(path, "another program has replaced it", ESTALE);
    if (static_cast<std::uint64_t>(found.st_size) < bytes) {
        throw_errno(path,
                    "another program has cut it to " + std::to_string(found.st_size) + " of " +
                        std::to_string(bytes) + " bytes",
                    ESTALE);
    }
}

File::File(std::filesystem::path path, IfExists if_exists, mode_t mode)
    : identity_{std::move(path)}, descriptor_(open_for_writing(identity_.path, if_exists, mode)) {
    struct stat file {};
    if (::fstat(descriptor_, &file) != 0 || !S_ISREG(file.st_mode)) return;
    identity_.device = file.st_dev;
    identity_.inode = file.st_ino;
}

File::~File() {
    if (is_open()) ::close(descriptor_);
}

void File::append(std::span<const std::byte> data) {
    iovec piece{const_cast<std::byte*>(data.data()), data.size()};  // writev takes no const
    append(std::span(&piece, 1));
}

void File::append(std::string_view text) {
    append(std::as_bytes(std::span(text)));
}

void File::append(std::span<iovec> pieces) {
    assert(is_open());
    std::uint64_t end = identity_.bytes;
    for (pieces = without_front(pieces, 0); !pieces.empty();) {
        const auto count = static_cast<int>(std::min<std::size_t>(pieces.size(), IOV_MAX));
        const ssize_t wrote = file_calls().write(descriptor_, pieces.data(), count);
        if (wrote <= 0) {
            const int error = wrote < 0 ? errno : EIO;
            if (error == EINTR) continue;
            cut_back();
            throw_errno(path(), "write failed", error);
        }
        end += static_cast<std::uint64_t>(wrote);
        pieces = without_front(pieces, static_cast<std::size_t>(wrote));
    }
    identity_.bytes = end;
}

void File::cut_back() noexcept {
    // Both may fail on a broken disk; readers cope with what is left.
    if (::ftruncate(descriptor_, static_cast<off_t>(identity_.bytes)) == 0)
        static_cast<void>(::lseek(descriptor_, static_cast<off_t>(identity_.bytes), SEEK_SET));
}

void File::cut(std::uint64_t bytes) {
    assert(bytes <= identity_.bytes);
    if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0 ||
        ::lseek(descriptor_, static_cast<off_t>(bytes), SEEK_SET) < 0)
        throw_errno(path(), "cut failed", errno);
    identity_.bytes = bytes;
}

void File::start_writeback(std::uint64_t bytes) noexcept {
    assert(bytes <= identity_.bytes);
    // Errors show in the sync.
    static_cast<void>(::sync_file_range(descriptor_, static_cast<off_t>(identity_.bytes - bytes),
                                        static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE));
}

void File::sync() {
    if (const int error = sync_error(file_calls().sync, descriptor_); error != 0)
        throw_errno(path(), "sync failed", error);
}

void File::allocate(std::uint64_t bytes) {
    int error = 0;
    do
        error = file_calls().allocate(descriptor_, 0, static_cast<off_t>(bytes));
    while (error == EINTR);
    if (error == ENOSPC || error == EDQUOT) throw_errno(path(), "disk space cannot be reserved", error);
}

void File::lock() {
    int result = 0;
    do
        result = ::flock(descriptor_, LOCK_EX);
    while (result != 0 && errno == EINTR);
}

void File::empty() noexcept {
    if (::ftruncate(descriptor_, 0) == 0) identity_.bytes = 0;
}

void File::close() {
    if (::close(std::exchange(descriptor_, -1)) != 0) throw_errno(path(), "close failed", errno);
}

void File::discard() noexcept {
    if (is_open()) ::close(std::exchange(descriptor_, -1));
    ::unlink(path().c_str());
}

void rename_file(const std::filesystem::path& from, const std::filesystem::path& to, IfExists if_exists) {
    const int result = if_exists == IfExists::overwrite ? file_calls().rename(from.c_str(), to.c_str())
                                                        : rename_to_new(from.c_str(), to.c_str());
    if (result != 0) throw_errno(from, "cannot be renamed to " + to.string(), errno);
}

void sync_directory_of(const std::filesystem::path& file) {
    const auto directory = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
    sync_path(directory, O_DIRECTORY, file_calls().sync_directory);
}

void sync_file(const std::filesystem::path& file) {
    sync_path(file, 0, file_calls().sync);
    sync_directory_of(file);
}

void replace_file(const std::filesystem::path& path, std::string_view content) {
    File temporary(config::temporary_name(path));
    try {
        temporary.append(content);
        temporary.sync();
        temporary.close();
        rename_file(temporary.path(), path);
    } catch (...) {
        temporary.discard();
        throw;
    }
    sync_directory_of(path);
}

}  // namespace petacq::daemon

// Writes files that must reach the disk. All files that the daemon and the tools write go through here,
// except those of the HDF5 library, so that tests can simulate a failing disk in one place.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

namespace petacq::daemon {

/// The system calls that fail on a bad disk, with the arguments and results of the real ones.
struct FileCalls {
    std::function<ssize_t(int, const iovec*, int)> write;  ///< writev
    std::function<int(int)> sync;                          ///< fdatasync
    std::function<int(int, off_t, off_t)> allocate;        ///< posix_fallocate
    std::function<int(const char*, const char*)> rename;   ///< rename
    std::function<int(int)> sync_directory;                ///< fsync
};

/// The calls that this process uses. Only tests replace them, while no other thread writes a file.
FileCalls& file_calls();

/// discard: what has the name is removed first, such as the temporary file of a program that was killed; a
/// link is not followed.
enum class IfExists : std::uint8_t { fail, overwrite, discard };

/// Which file a path named when it was opened, and how much has been written to it since.
struct FileIdentity {
    std::filesystem::path path;
    dev_t device = 0;
    ino_t inode = 0;  ///< 0: no regular file; it always passes the check
    std::uint64_t bytes = 0;

    /// Reads the identity of a file that is known to be whole. Throws std::system_error.
    static FileIdentity of(const std::filesystem::path& path);
    /// Throws std::system_error, naming the file, when the path names no file or another one, or when the
    /// file is shorter: another program has removed, renamed, replaced or cut it.
    void check() const;
};

/// A file that is written from its beginning. Every failure is a std::system_error that names the file. One
/// thread at a time.
class File {
  public:
    explicit File(std::filesystem::path path, IfExists if_exists = IfExists::fail, mode_t mode = 0666);
    /// Closes the file and ignores errors; call close() first where they matter.
    ~File();
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    /// Appends everything. On failure it cuts the file back to its previous length if it can.
    void append(std::span<const std::byte> data);
    void append(std::string_view text);
    /// Appends the pieces one after the other, without copying them. Changes `pieces`.
    void append(std::span<iovec> pieces);
    /// Removes what follows the first `bytes`.
    void cut(std::uint64_t bytes);
    /// Asks the kernel to start writing the last `bytes`, so that the next sync() is short. Never fails.
    void start_writeback(std::uint64_t bytes) noexcept;
    /// Returns when everything appended is on the disk. A pipe has nothing to sync.
    void sync();
    /// Reserves disk space from the beginning of the file. Throws when the disk is full; does nothing on a
    /// file system that cannot reserve.
    void allocate(std::uint64_t bytes);
    /// Locks the file until it is closed or the process ends. Waits for programs that hold a lock. Does
    /// nothing on a file system that has no locks.
    void lock();
    /// Gives the space of the file back. Never fails.
    void empty() noexcept;
    void close();
    /// Closes the file and removes it.
    void discard() noexcept;

    [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
    [[nodiscard]] const std::filesystem::path& path() const { return identity_.path; }
    /// Bytes appended so far.
    [[nodiscard]] std::uint64_t bytes() const { return identity_.bytes; }
    /// Also after close().
    [[nodiscard]] const FileIdentity& identity() const { return identity_; }

  private:
    void cut_back() noexcept;

    FileIdentity identity_;
    int descriptor_ = -1;
};

/// Renames a file; with `fail`, it never replaces another one. Throws std::system_error.
void rename_file(const std::filesystem::path& from, const std::filesystem::path& to,
                 IfExists if_exists = IfExists::overwrite);

/// Returns when the name of the file is on the disk. Throws std::system_error.
void sync_directory_of(const std::filesystem::path& file);

/// Returns when a file that others have written is on the disk, with its name. Throws std::system_error.
void sync_file(const std::filesystem::path& file);

/// Replaces the file, or creates it. At any time, power cuts included, it has either its previous content or
/// all of `content`. In between it has a name of its own (config::temporary_name). Throws std::system_error;
/// the previous content then stays unless only the directory could not be synced.
void replace_file(const std::filesystem::path& path, std::string_view content);

}  // namespace petacq::daemon

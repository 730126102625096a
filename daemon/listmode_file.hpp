// Writes a list-mode file block by block in the calling thread: what the list-mode writer's thread and the
// recovery of files stand on.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "daemon/listmode_format.hpp"

namespace petacq::daemon {

/// The system calls that may fail on a bad disk; tests put others in their place. Empty: the real ones.
struct FileCalls {
    std::function<ssize_t(int, const void*, std::size_t)> write;
    std::function<int(int)> sync;
};

/// One file, made anew. Every failure is thrown as std::system_error and leaves the file at its last whole
/// block; close() may still add the index then.
class ListModeFile {
  public:
    /// Makes the file (an existing one is an error) with its header, and syncs it and its directory. Nothing
    /// is left of it when that fails. Throws std::invalid_argument as make_file_header does.
    ListModeFile(std::filesystem::path path, RecordKind kind, std::uint32_t block_bytes,
                 const nlohmann::json& description, FileCalls calls = {});
    /// Closes without an index when close() was not called.
    ~ListModeFile();
    ListModeFile(const ListModeFile&) = delete;
    ListModeFile& operator=(const ListModeFile&) = delete;

    /// `block`: room for the header, which is filled in here, and at least one record behind it. At most
    /// block_bytes.
    void write_block(std::span<std::byte> block);
    /// What was written is on the disk when it returns.
    void sync();
    /// Index, trailer, sync, close. The file is closed in any case; without index when this throws.
    void close();

    [[nodiscard]] std::uint64_t bytes() const { return end_; }
    [[nodiscard]] std::uint64_t blocks() const { return index_.size(); }
    [[nodiscard]] std::uint64_t records() const { return records_; }

  private:
    void write_all(std::span<const std::byte> data);
    [[noreturn]] void fail(const char* what, int error) const;

    std::filesystem::path path_;
    FileCalls calls_;
    int file_ = -1;
    std::uint32_t record_bytes_ = 0;
    std::uint64_t end_ = 0;  ///< of what is whole
    std::uint64_t records_ = 0;
    std::uint32_t payload_crc_ = 0;
    std::vector<IndexEntry> index_;
};

}  // namespace petacq::daemon

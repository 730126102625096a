// Writes a list-mode file block by block in the calling thread, for the writer and for recovery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "daemon/host/file.hpp"
#include "daemon/listmode/format.hpp"

namespace petacq::daemon {

/// One list-mode file. Every failure is a std::system_error that names the file; the file then ends at its
/// last whole block, and close() may still be able to add the index. Without close() the file has no index.
/// It is a failure, too, if another program has removed, replaced or cut the file (FileIdentity::check()):
/// write_block() and close() look. One thread at a time.
class ListModeFile {
  public:
    /// Creates the file, which must not exist, with its header; syncs it and its directory. Leaves nothing
    /// behind when that fails. Throws std::invalid_argument as make_file_header does.
    ListModeFile(std::filesystem::path path, RecordKind kind, std::uint32_t block_bytes,
                 const nlohmann::json& description);

    /// `block`: room for the block header, which this function fills in, followed by one record or more; at
    /// most block_bytes together.
    void write_block(std::span<std::byte> block);
    /// Returns when all blocks so far are on the disk.
    void sync() { file_.sync(); }
    /// Writes index and trailer, syncs and closes. When it throws, the file has no index. Does nothing when
    /// called again after success.
    void close();

    /// Throws if another program has removed, replaced or cut the file.
    void check() const { file_.identity().check(); }
    /// Also after close().
    [[nodiscard]] const FileIdentity& identity() const { return file_.identity(); }

    [[nodiscard]] std::uint64_t bytes() const { return file_.bytes(); }
    [[nodiscard]] std::uint64_t blocks() const { return index_.size(); }
    [[nodiscard]] std::uint64_t records() const { return records_; }

  private:
    ListModeFile(std::filesystem::path path, RecordKind kind, std::span<const std::byte> header);

    File file_;
    const std::uint32_t record_bytes_;
    std::uint64_t records_ = 0;
    std::uint32_t payload_crc_ = 0;
    std::vector<IndexEntry> index_;
};

}  // namespace petacq::daemon

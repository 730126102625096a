// Writes a list-mode file block by block in the calling thread, for the writer and for recovery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "config/choices.hpp"
#include "daemon/listmode/format.hpp"
#include "daemon/system/file.hpp"

namespace petacq::daemon {

class BlockCompressor;

/// A block on its way to a file.
struct BlockOfRecords {
    std::uint64_t number = 0;        ///< in its set
    std::uint64_t first_record = 0;  ///< number of records in the previous blocks of its set
    /// The records, one or more, one stretch after the other; a stretch holds whole records.
    std::span<const std::span<const std::byte>> stretches;
};

/// One list-mode file. Every failure is a std::system_error that names the file; the file then ends at its
/// last whole block, and close() may still be able to add the index. Without close() the file has no index.
/// It is a failure, too, if another program has removed, replaced or cut the file (FileIdentity::check()):
/// write_block() and close() look. One thread at a time.
class ListModeFile {
  public:
    /// Creates the file, which must not exist, with its header; syncs it and its directory. Leaves nothing
    /// behind when that fails. `record_bytes`: for kinds without a size of their own. `has_closing`: close()
    /// will get a description. Throws std::invalid_argument as make_file_header does.
    ListModeFile(std::filesystem::path path, RecordKind kind, std::uint32_t block_bytes,
                 const nlohmann::json& description,
                 config::Compression compression = config::Compression::none, std::uint32_t record_bytes = 0,
                 bool has_closing = false);
    ~ListModeFile();

    /// Appends a block; with its header at most block_bytes. The numbers of blocks ascend.
    void write_block(const BlockOfRecords& block);
    /// The next block of a file that stands alone.
    void write_block(std::span<const std::byte> records) {
        write_block({blocks(), this->records(), {&records, 1}});
    }
    /// Removes all blocks. REQUIRES: not closed.
    void remove_blocks();
    /// Returns when all blocks so far are on the disk.
    void sync() { file_.sync(); }
    /// Writes index, closing description and trailer, syncs and closes. Members of `closing`, an object,
    /// replace those of the description; only for a file that was created to have one. When it throws, the
    /// file has no index. Does nothing when called again after success.
    void close(const nlohmann::json& closing);
    void close();
    /// Closes the file and removes it.
    void discard() noexcept { file_.discard(); }

    /// Throws if another program has removed, replaced or cut the file.
    void check() const { file_.identity().check(); }
    /// Also after close().
    [[nodiscard]] const FileIdentity& identity() const { return file_.identity(); }

    [[nodiscard]] std::uint64_t bytes() const { return file_.bytes(); }
    [[nodiscard]] std::uint64_t blocks() const { return index_.size(); }
    [[nodiscard]] std::uint64_t records() const { return records_; }

  private:
    void append_index(const std::string& closing);

    File file_;
    std::uint64_t header_bytes_ = 0;
    bool has_index_ = false;
    const bool has_closing_;
    const std::uint32_t record_bytes_;
    std::uint64_t records_ = 0;
    std::uint32_t payload_crc_ = 0;
    std::vector<IndexEntry> index_;
    std::vector<iovec> pieces_;
    std::unique_ptr<BlockCompressor> compressor_;  ///< nullptr: the blocks are not compressed
};

}  // namespace petacq::daemon

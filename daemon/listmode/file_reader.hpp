// Reads one list-mode file, which stands alone or belongs to a set, block by block. Finds every whole block,
// even in a truncated or damaged file. ListModeReader puts the files of a set together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "daemon/listmode/format.hpp"

namespace petacq::daemon {

class BlockDecompressor;

/// The file is not a readable list-mode file. The message names it and says what was expected.
class NotListMode : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A faulty stretch of a file.
struct Damage {
    std::uint64_t offset = 0;  ///< in the file
    std::uint64_t bytes = 0;   ///< unreadable bytes; 0 when the blocks around it are whole
    std::uint64_t block = 0;   ///< number of the block that was expected here
    std::string what;
    std::string file = {};  ///< name of the file, if it belongs to a set
};

/// A block that was read by itself, with the memory that reading takes. It may be used again.
struct LoadedBlock {
    LoadedBlock();
    ~LoadedBlock();
    LoadedBlock(LoadedBlock&&) noexcept;
    LoadedBlock& operator=(LoadedBlock&&) noexcept;

    BlockHeader header;
    std::vector<std::byte> records;
    std::vector<std::byte> stored;                    ///< the same, compressed
    std::unique_ptr<BlockDecompressor> decompressor;  ///< of a file with compressed blocks
};

/// One pass over one file, as that of ListModeReader. One thread at a time.
class ListModeFileReader {
  public:
    /// Throws NotListMode for a file of another kind, an empty file and a damaged header; std::system_error
    /// when the file cannot be opened or read.
    explicit ListModeFileReader(std::filesystem::path path);
    ~ListModeFileReader();
    ListModeFileReader(const ListModeFileReader&) = delete;
    ListModeFileReader& operator=(const ListModeFileReader&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    /// The JSON of the file header, without the place in a set.
    /// With the closing description, if the file has one and its index.
    [[nodiscard]] const nlohmann::json& description() const { return *description_; }
    /// Without it: the same in all files of a set, whatever has become of them.
    [[nodiscard]] const nlohmann::json& header_description() const { return *header_description_; }
    [[nodiscard]] const FileHeader& header() const { return header_; }
    /// Its number in its set, counted from 0, and the number of files of the set. 0 of 1: it stands alone.
    [[nodiscard]] std::uint32_t file() const { return file_; }
    [[nodiscard]] std::uint32_t files() const { return files_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    /// Trailer and index, if present with correct CRCs.
    [[nodiscard]] const std::optional<Trailer>& trailer() const { return trailer_; }
    [[nodiscard]] std::span<const IndexEntry> index() const { return index_; }

    /// Whether select() can be called with these entries: false if the index contradicts itself.
    [[nodiscard]] bool can_select(std::size_t first, std::size_t end) const;
    /// Narrows the pass to these entries of the index. Only before the first next(). REQUIRES: can_select().
    void select(std::size_t first, std::size_t end);

    /// Reads and checks the block at this offset, whatever the pass is at. False if there is no whole block;
    /// `why` gives the reason. Any number of threads may call it, each with a block of its own.
    bool load(std::uint64_t offset, LoadedBlock& block, std::string& why) const;
    /// The same for a block of known size, whose records go to `records`, not to `block`.
    bool load(std::uint64_t offset, LoadedBlock& block, std::span<std::byte> records, std::string& why) const;

    // A file that is being written has no index yet. Its blocks are found one after the other.

    /// Looks again how large the file is, and whether it has an index by now.
    void refresh();
    /// Reads the header of the block at this offset. Returns where the block ends; absent unless the file
    /// holds the whole block. Any number of threads may call it.
    std::optional<std::uint64_t> find_block(std::uint64_t offset, BlockHeader& header) const;

    /// Goes to the next whole block, past damaged stretches, which it adds to `damage`. False at the end.
    bool next(std::vector<Damage>& damage);
    /// The current block; valid until the next call of next().
    [[nodiscard]] const BlockHeader& block() const { return loaded_.header; }
    [[nodiscard]] std::uint64_t block_offset() const { return block_offset_; }
    [[nodiscard]] std::span<const std::byte> payload() const { return loaded_.records; }
    /// How far the pass has come.
    [[nodiscard]] std::uint64_t position() const { return position_; }
    /// After the last whole block, in a file without index. Known at the end.
    [[nodiscard]] std::uint64_t tail_bytes() const { return tail_bytes_; }

  private:
    void read_header();
    void read_description(std::span<const std::byte> text);
    void read_size();
    void read_index();
    [[nodiscard]] bool read_closing(const Trailer& trailer, std::uint64_t offset);
    [[nodiscard]] std::size_t read_at(std::uint64_t offset, std::byte* into, std::size_t bytes) const;
    bool load_block(std::uint64_t offset, std::string& why);
    bool load_records(std::uint64_t offset, LoadedBlock& block, std::span<std::byte> records,
                      std::string& why) const;
    bool read_block_header(std::uint64_t offset, BlockHeader& block, std::string& why) const;
    [[nodiscard]] bool plausible(const BlockHeader& header, std::uint64_t offset, std::string& why) const;
    [[nodiscard]] std::optional<std::uint64_t> find_magic(std::uint64_t from);
    void note(std::vector<Damage>& damage, Damage found);
    void accept_block(std::vector<Damage>& damage);
    void finish(std::vector<Damage>& damage);
    [[nodiscard]] std::uint64_t stored_bytes(const BlockHeader& header) const;
    [[nodiscard]] std::uint64_t entry_of(std::uint64_t block) const { return (block - file_) / files_; }

    std::filesystem::path path_;
    int descriptor_ = -1;
    std::uint64_t bytes_ = 0;
    std::uint64_t blocks_end_ = 0;  ///< start of the index, or the end of the file
    FileHeader header_;
    std::unique_ptr<nlohmann::json> header_description_;
    std::unique_ptr<nlohmann::json> description_;
    std::uint32_t file_ = 0;
    std::uint32_t files_ = 1;
    std::optional<Trailer> trailer_;
    std::vector<IndexEntry> index_;
    std::uint64_t position_ = 0;        ///< offset of the next block
    std::uint64_t expected_block_ = 0;  ///< number of the block at `position_`
    bool selected_ = false;             ///< select() has narrowed the range
    LoadedBlock loaded_;                ///< the current block
    std::uint64_t block_offset_ = 0;
    std::vector<std::byte> search_;  ///< window of find_magic
    bool done_ = false;
    bool damaged_ = false;
    std::uint64_t blocks_ = 0;  ///< whole ones so far, and their records
    std::uint64_t records_ = 0;
    std::uint32_t payload_crc_ = 0;
    std::uint64_t tail_bytes_ = 0;
};

}  // namespace petacq::daemon

// Reads list-mode files. Finds every whole block, even in a truncated or damaged file.
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
#include "gpu/types.hpp"

namespace petacq::daemon {

/// The file is not a readable list-mode file. The message names it and says what was expected.
class NotListMode : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// complete: the index and all blocks are present and agree. truncated: the file ends before its index, and
/// nothing else is wrong. damaged: something before the end is wrong.
enum class FileState : std::uint8_t { complete, truncated, damaged };
const char* name_of(FileState state);

/// A faulty stretch of the file.
struct Damage {
    std::uint64_t offset = 0;  ///< in the file
    std::uint64_t bytes = 0;   ///< unreadable bytes; 0 when the blocks around it are whole
    std::uint64_t block = 0;   ///< number of the block that was expected here
    std::string what;
};

/// The reader's findings so far.
struct Condition {
    FileState state = FileState::complete;
    bool has_index = false;
    std::uint64_t blocks = 0;           ///< whole blocks
    std::uint64_t records = 0;          ///< in whole blocks
    std::uint32_t payload_crc = 0;      ///< CRC-32C of these records, in order
    std::uint64_t missing_records = 0;  ///< as far as the surrounding blocks and the index tell
    std::uint64_t tail_bytes = 0;       ///< after the last whole block, in a file without index
    std::uint64_t damaged_bytes = 0;    ///< unreadable, before the last whole block
    std::uint64_t damage_count = 0;
    std::vector<Damage> damage;  ///< the first hundred
    /// One line for people.
    [[nodiscard]] std::string summary() const;
};

/// One pass from the first block to the last:
///
///     ListModeReader reader(path);
///     while (reader.next()) use(reader.coincidences());
///     if (reader.condition().state != FileState::complete) complain(reader.condition().summary());
///
/// Reads block by block into one buffer. One thread at a time.
class ListModeReader {
  public:
    /// Throws NotListMode for a file of another kind, an empty file and a damaged header; std::system_error
    /// when the file cannot be opened or read.
    explicit ListModeReader(std::filesystem::path path);
    ~ListModeReader();
    ListModeReader(const ListModeReader&) = delete;
    ListModeReader& operator=(const ListModeReader&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    /// The JSON of the file header.
    [[nodiscard]] const nlohmann::json& description() const { return *description_; }
    [[nodiscard]] const FileHeader& header() const { return header_; }
    [[nodiscard]] RecordKind kind() const { return header_.kind; }
    [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }
    /// Trailer and index, if present with correct CRCs. Known before the first block is read.
    [[nodiscard]] const std::optional<Trailer>& trailer() const { return trailer_; }
    [[nodiscard]] std::span<const IndexEntry> index() const { return index_; }

    /// Skips the blocks without records in from <= time < to; does not read or check them. Skips nothing in a
    /// file without index. Only before the first next().
    void select(std::uint64_t from, std::uint64_t to);

    /// Goes to the next whole block, past damaged stretches. False at the end. Throws std::system_error when
    /// reading fails.
    bool next();
    /// The current block and its records; valid until the next call of next().
    [[nodiscard]] const BlockHeader& block() const { return block_; }
    [[nodiscard]] std::uint64_t block_offset() const { return block_offset_; }
    [[nodiscard]] std::span<const std::byte> payload() const { return buffer_; }
    /// These throw std::logic_error when the file holds the other kind.
    [[nodiscard]] std::span<const gpu::Coincidence> coincidences() const;
    [[nodiscard]] std::span<const gpu::Single> singles() const;

    /// Final once next() has returned false.
    [[nodiscard]] const Condition& condition() const { return condition_; }

  private:
    void read_header();
    void read_index();
    [[nodiscard]] std::size_t read_at(std::uint64_t offset, std::byte* into, std::size_t bytes) const;
    bool load_block(std::uint64_t offset, std::string& why);
    [[nodiscard]] bool plausible(const BlockHeader& header, std::uint64_t offset, std::string& why) const;
    [[nodiscard]] std::optional<std::uint64_t> find_magic(std::uint64_t from);
    void note_damage(Damage damage);
    void accept_block();
    void finish();

    std::filesystem::path path_;
    int file_ = -1;
    std::uint64_t file_bytes_ = 0;
    std::uint64_t blocks_end_ = 0;  ///< start of the index, or the end of the file
    FileHeader header_;
    std::unique_ptr<const nlohmann::json> description_;
    std::optional<Trailer> trailer_;
    std::vector<IndexEntry> index_;
    std::uint64_t position_ = 0;  ///< offset of the next block
    std::uint64_t expected_block_ = 0;
    std::uint64_t expected_record_ = 0;
    bool selected_ = false;           ///< select() has narrowed the range
    std::uint64_t selected_end_ = 0;  ///< number of records up to the end of the selected blocks
    BlockHeader block_;
    std::uint64_t block_offset_ = 0;
    std::vector<std::byte> buffer_;  ///< records of the current block
    std::vector<std::byte> search_;  ///< window of find_magic
    bool done_ = false;
    Condition condition_;
};

}  // namespace petacq::daemon

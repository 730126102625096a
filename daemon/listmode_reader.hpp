// Reads list-mode files, whole or not: every whole block is found, whatever became of the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "daemon/listmode_format.hpp"
#include "gpu/types.hpp"

namespace petacq::daemon {

/// The file is not a list-mode file that can be read; the message names it and says what was expected.
class NotListMode : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// complete: index and every block are there and agree. truncated: the file ends before its index, nothing
/// else is wrong. damaged: something in front of the end is wrong.
enum class FileState : std::uint8_t { complete, truncated, damaged };
const char* name_of(FileState state);

/// A stretch that is not what it should be.
struct Damage {
    std::uint64_t offset = 0;  ///< in the file
    std::uint64_t bytes = 0;   ///< not readable; 0 when whole blocks lie around it
    std::uint64_t block = 0;   ///< number of the block that was expected there
    std::string what;
};

/// What was found on the way through the file.
struct Condition {
    FileState state = FileState::complete;
    bool has_index = false;
    std::uint64_t blocks = 0;           ///< whole blocks
    std::uint64_t records = 0;          ///< in them
    std::uint32_t payload_crc = 0;      ///< CRC-32C of these records, one after the other
    std::uint64_t missing_records = 0;  ///< known from the blocks and the index around the damage
    std::uint64_t tail_bytes = 0;       ///< behind the last whole block, without index
    std::uint64_t damaged_bytes = 0;    ///< not readable, in front of the last whole block
    std::uint64_t damage_count = 0;
    std::vector<Damage> damage;  ///< the first hundred
    /// One line, for a person.
    [[nodiscard]] std::string summary() const;
};

/// One pass from the first block to the last:
///
///     ListModeReader reader(path);
///     while (reader.next()) use(reader.coincidences());
///     if (reader.condition().state != FileState::complete) complain(reader.condition().summary());
///
/// Reads block by block into one buffer. Not for use by several threads at a time.
class ListModeReader {
  public:
    /// Throws NotListMode for a file that is none, is empty, or has a damaged header; std::system_error when
    /// it cannot be opened or read.
    explicit ListModeReader(std::filesystem::path path);
    ~ListModeReader();
    ListModeReader(const ListModeReader&) = delete;
    ListModeReader& operator=(const ListModeReader&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    /// The JSON of the file header.
    [[nodiscard]] const nlohmann::json& description() const { return description_; }
    [[nodiscard]] const FileHeader& header() const { return header_; }
    [[nodiscard]] RecordKind kind() const { return header_.kind; }
    [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }
    /// The trailer and the index, when they are there and their CRCs are right; known before the first block
    /// is read.
    [[nodiscard]] const std::optional<Trailer>& trailer() const { return trailer_; }
    [[nodiscard]] std::span<const IndexEntry> index() const { return index_; }

    /// Before the first next(): passes over blocks that hold nothing of from <= time < to, without reading
    /// them. What is passed over is not checked. Without index nothing is passed over.
    void select(std::uint64_t from, std::uint64_t to);

    /// Goes to the next whole block, past damaged stretches. False at the end. Throws std::system_error when
    /// reading fails.
    bool next();
    /// Of the block that next() went to; valid until the next call of next().
    [[nodiscard]] const BlockHeader& block() const { return block_; }
    [[nodiscard]] std::uint64_t block_offset() const { return block_offset_; }
    [[nodiscard]] std::span<const std::byte> payload() const;
    /// Throw std::logic_error when the file holds the other kind.
    [[nodiscard]] std::span<const gpu::Coincidence> coincidences() const;
    [[nodiscard]] std::span<const gpu::Single> singles() const;

    /// Final when next() has returned false.
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
    std::uint64_t blocks_end_ = 0;  ///< where the index begins, or the end of the file
    FileHeader header_;
    nlohmann::json description_;
    std::optional<Trailer> trailer_;
    std::vector<IndexEntry> index_;
    std::uint64_t position_ = 0;  ///< where the next block should be
    std::uint64_t expected_block_ = 0;
    std::uint64_t expected_record_ = 0;
    bool selected_ = false;           ///< not all blocks of the index are gone through
    std::uint64_t selected_end_ = 0;  ///< records up to the end of the selected blocks
    BlockHeader block_;
    std::uint64_t block_offset_ = 0;
    std::vector<std::byte> buffer_;  ///< records of the block
    std::vector<std::byte> search_;  ///< window of find_magic
    bool done_ = false;
    Condition condition_;
};

/// All records of a complete file of that kind. Throws std::runtime_error with the summary when the file is
/// not complete. For files that fit in memory.
std::vector<gpu::Coincidence> read_coincidences(const std::filesystem::path& path);
std::vector<gpu::Single> read_singles(const std::filesystem::path& path);

}  // namespace petacq::daemon

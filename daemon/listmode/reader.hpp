// Reads list-mode, from one file or a set of files, block by block. Finds every whole block, even in
// truncated or damaged files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/listmode/file_reader.hpp"
#include "daemon/listmode/format.hpp"
#include "gpu/base/records.hpp"

namespace petacq::daemon {

/// complete: the index and all blocks are present and agree. truncated: the file, or files of the set, end
/// before their index, and nothing else is wrong. damaged: something else is wrong.
enum class FileState : std::uint8_t { complete, truncated, damaged };
const char* name_of(FileState state);

/// The reader's findings so far.
struct Condition {
    FileState state = FileState::complete;
    bool has_index = false;  ///< every file has one
    std::uint32_t files = 1;
    std::uint64_t blocks = 0;           ///< whole blocks
    std::uint64_t records = 0;          ///< in whole blocks
    std::uint32_t payload_crc = 0;      ///< CRC-32C of these records, in order
    std::uint64_t missing_records = 0;  ///< as far as the surrounding blocks and the index tell
    std::uint64_t tail_bytes = 0;       ///< after the last whole block, in files without index
    std::uint64_t damaged_bytes = 0;    ///< unreadable, before the last whole block
    std::uint64_t damage_count = 0;
    std::uint64_t cut_off_count = 0;  ///< of these: a file of a set ends before a block that others follow
    std::vector<Damage> damage;       ///< the first hundred
    /// One line for people.
    [[nodiscard]] std::string summary() const;
};

/// One pass from the first block to the last:
///
///     ListModeReader reader(path);
///     while (reader.next()) use(reader.coincidences());
///     if (reader.condition().state != FileState::complete) complain(reader.condition().summary());
///
/// The reader of a set yields the blocks of all its files in the order of their numbers. It reads block by
/// block into one buffer for each file. One thread at a time.
class ListModeReader {
  public:
    /// `path`: a file, any file of a set, or the name of a set. Throws NotListMode for a file of another
    /// kind, an empty file and a damaged header, unless other files of its set can be read; std::system_error
    /// when the file cannot be opened or read.
    explicit ListModeReader(std::filesystem::path path);
    ~ListModeReader();
    ListModeReader(const ListModeReader&) = delete;
    ListModeReader& operator=(const ListModeReader&) = delete;

    /// The file, or the name of the set.
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    /// The JSON of the file header, without the place in a set.
    [[nodiscard]] const nlohmann::json& description() const;
    [[nodiscard]] const FileHeader& header() const;
    [[nodiscard]] RecordKind kind() const { return header().kind; }
    /// The sum over all files.
    [[nodiscard]] std::uint64_t file_bytes() const;
    /// Trailer and index, if present with correct CRCs. Known before the first block is read. Those of a set
    /// describe all blocks in order; an offset is that in the file of the block. Absent if the files of the
    /// set do not end with the same block.
    [[nodiscard]] const std::optional<Trailer>& trailer() const { return trailer_; }
    [[nodiscard]] std::span<const IndexEntry> index() const { return index_; }

    /// Skips the blocks without records in from <= time < to; does not read or check them. Skips nothing
    /// without index. Only before the first next().
    void select(std::uint64_t from, std::uint64_t to);

    /// Goes to the next whole block, past damaged stretches. False at the end. Throws std::system_error when
    /// reading fails.
    bool next();
    /// The current block and its records; valid until the next call of next().
    [[nodiscard]] const BlockHeader& block() const { return current_->reader->block(); }
    /// In the file of the block.
    [[nodiscard]] std::uint64_t block_offset() const { return current_->reader->block_offset(); }
    [[nodiscard]] std::span<const std::byte> payload() const { return current_->reader->payload(); }
    /// These throw std::logic_error when the file holds another kind.
    [[nodiscard]] std::span<const gpu::Coincidence> coincidences() const;
    [[nodiscard]] std::span<const gpu::Single> singles() const;
    [[nodiscard]] std::span<const gpu::Tag> tags() const;
    [[nodiscard]] std::span<const gpu::Triple> triples() const;
    /// How much of file_bytes() has been passed.
    [[nodiscard]] std::uint64_t bytes_done() const;

    /// Final once next() has returned false.
    [[nodiscard]] const Condition& condition() const { return condition_; }

  private:
    struct FileOfSet {
        std::unique_ptr<ListModeFileReader> reader;  ///< nullptr: it cannot be read
        std::string why;                             ///< it cannot be read
        bool at_block = false;                       ///< reader is at a block that has not been yielded
        bool missed = false;                         ///< a block that it does not have was noted
    };

    template <class Record>
    [[nodiscard]] std::span<const Record> records_of(RecordKind kind) const;
    void open_set(std::unique_ptr<ListModeFileReader> first);
    [[nodiscard]] FileOfSet open_member(std::uint32_t file) const;
    void join_indexes();
    void advance(FileOfSet& member);
    void note(Damage damage);
    void note_missing(std::uint64_t block);
    void accept_block();
    void finish();

    std::filesystem::path path_;
    std::vector<FileOfSet> members_;  ///< in the order of the set; one if the file stands alone
    FileOfSet* current_ = nullptr;    ///< has the current block, at first the first that can be read
    std::optional<Trailer> trailer_;
    std::vector<IndexEntry> index_;
    std::uint64_t expected_block_ = 0;
    std::uint64_t expected_record_ = 0;
    std::optional<std::uint64_t> records_end_;  ///< number of records up to the end, if the indexes tell
    std::vector<Damage> found_;                 ///< by the member that was advanced
    bool started_ = false;
    bool done_ = false;
    Condition condition_;
};

}  // namespace petacq::daemon

// The saved singles of one run, block by block, in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "daemon/coverage/intervals.hpp"
#include "daemon/listmode/file_reader.hpp"
#include "gpu/base/records.hpp"
#include "gpu/tick_range.hpp"

namespace petacq::daemon {
class ListModeReader;
}

namespace petacq::petlm {

/// Any number of threads may read, each into a block of its own, while none calls extend(), append() or
/// receive().
class SinglesFiles {
  public:
    struct SinglesBlock {
        std::uint64_t offset = 0;      ///< in its file
        std::uint64_t first_time = 0;  ///< ticks
        std::uint64_t last_time = 0;
        std::uint32_t records = 0;
        std::uint32_t file = 0;
    };

    /// `target`: a run directory or a file of singles. Throws as record_files() does, daemon::NotListMode for
    /// files of another kind, and BadInput for files that are incomplete or whose index contradicts itself.
    explicit SinglesFiles(const std::filesystem::path& target);
    /// The files of a run that is still written, or has been: extend() finds their blocks. Throws as the
    /// constructor does, but not for incomplete files.
    static SinglesFiles followed(const std::filesystem::path& run);
    /// Files on another host, whose blocks are told by append(), and read after receive().
    SinglesFiles(const nlohmann::json& description, std::uint32_t block_bytes);
    ~SinglesFiles();
    SinglesFiles(SinglesFiles&&) noexcept;

    /// The description in the first file.
    [[nodiscard]] const nlohmann::json& description() const { return *description_; }
    /// The same without the closing description: it is the same before and after the file is closed.
    [[nodiscard]] nlohmann::json header_description() const;
    [[nodiscard]] std::uint32_t block_bytes() const { return block_bytes_; }
    /// In the order of their records.
    [[nodiscard]] std::span<const SinglesBlock> blocks() const { return blocks_; }
    /// Those that may have singles in the range.
    [[nodiscard]] std::span<const SinglesBlock> blocks_in(gpu::TickRange range) const;

    /// Of files that are followed: takes the whole blocks that have been written since, until there are
    /// `most` in all. Returns whether all files that are there are complete, so that no block follows if the
    /// run has ended. Throws as the constructor does.
    bool extend(std::size_t most = SIZE_MAX);
    /// Of files on another host: these blocks follow.
    void append(std::span<const SinglesBlock> blocks);
    /// Singles that have come from the other host: those of these blocks, one after the other. They replace
    /// earlier ones.
    void receive(std::span<const SinglesBlock> blocks, std::vector<gpu::Single> singles);
    /// Whether they are files of this host.
    [[nodiscard]] bool is_here() const { return !files_.empty(); }
    /// Reads the singles of a block; valid until `memory` is used again. Throws BadInput when it is damaged.
    /// REQUIRES: of files on another host, that the block has been received.
    std::span<const gpu::Single> read(const SinglesBlock& block, daemon::LoadedBlock& memory) const;
    /// The same into memory of the caller. REQUIRES: as many singles as the block has.
    void read(const SinglesBlock& block, daemon::LoadedBlock& memory, std::span<gpu::Single> singles) const;

    /// Singles at other times do not count: kept() leaves them out.
    void keep_only(daemon::Intervals times) { only_ = std::move(times); }
    [[nodiscard]] bool keeps_all() const { return !only_; }
    /// The singles of a block that count; valid until `memory` is used again.
    std::span<const gpu::Single> kept(std::span<const gpu::Single> of_block,
                                      std::vector<gpu::Single>& memory) const;

  private:
    SinglesFiles();
    void add(const std::filesystem::path& file);
    void open(const daemon::ListModeReader& part);
    bool open_next_part();
    bool take_whole_blocks(std::size_t most);
    void take(const SinglesBlock& block);
    void check(const SinglesBlock& block, std::span<const gpu::Single> singles) const;

    std::vector<std::unique_ptr<daemon::ListModeFileReader>> files_;
    std::unique_ptr<nlohmann::json> description_;
    std::uint32_t block_bytes_ = 0;
    std::vector<SinglesBlock> blocks_;
    std::optional<daemon::Intervals> only_;
    std::span<const SinglesBlock> received_blocks_;
    std::vector<gpu::Single> received_;

    // Of files that are followed.
    std::filesystem::path run_;
    std::size_t parts_ = 0;               ///< opened
    std::uint64_t number_ = 0;            ///< of the next block, in the last part
    std::vector<std::uint64_t> offsets_;  ///< of the next block in each file of the last part
};

}  // namespace petacq::petlm

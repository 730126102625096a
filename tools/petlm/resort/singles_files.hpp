// The saved singles of one run, block by block, in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "daemon/listmode/file_reader.hpp"
#include "gpu/second_cuts.hpp"
#include "gpu/types.hpp"

namespace petacq::petlm {

/// Any number of threads may read, each into a block of its own.
class SinglesFiles {
  public:
    struct Block {
        std::uint64_t offset = 0;      ///< in its file
        std::uint64_t first_time = 0;  ///< ticks
        std::uint64_t last_time = 0;
        std::uint32_t records = 0;
        std::uint32_t file = 0;
    };

    /// `target`: a run directory or a file of singles. Throws as record_files() does, daemon::NotListMode for
    /// files of another kind, and BadInput for files that are incomplete or whose index contradicts itself.
    explicit SinglesFiles(const std::filesystem::path& target);
    /// Files on another host, of which only the blocks are known until receive() is called.
    SinglesFiles(std::vector<Block> blocks, const nlohmann::json& description, std::uint32_t block_bytes);
    ~SinglesFiles();
    SinglesFiles(SinglesFiles&&) noexcept;

    /// The description in the first file.
    [[nodiscard]] const nlohmann::json& description() const { return *description_; }
    [[nodiscard]] std::uint32_t block_bytes() const { return block_bytes_; }
    /// In the order of their records.
    [[nodiscard]] std::span<const Block> blocks() const { return blocks_; }
    /// Those that may have singles in the range.
    [[nodiscard]] std::span<const Block> blocks_in(gpu::TickRange range) const;
    /// Singles that have come from the other host: those of these blocks, one after the other. They replace
    /// earlier ones.
    void receive(std::span<const Block> blocks, std::vector<gpu::Single> singles);
    /// Reads the singles of a block; valid until `memory` is used again. Throws BadInput when it is damaged.
    /// REQUIRES: of files on another host, that the block has been received.
    std::span<const gpu::Single> read(const Block& block, daemon::LoadedBlock& memory) const;

  private:
    void add(const std::filesystem::path& file);

    std::vector<std::unique_ptr<daemon::ListModeFileReader>> files_;
    std::unique_ptr<nlohmann::json> description_;
    std::uint32_t block_bytes_ = 0;
    std::vector<Block> blocks_;
    std::span<const Block> received_blocks_;
    std::vector<gpu::Single> received_;
};

}  // namespace petacq::petlm

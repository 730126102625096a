// The records of a run in one list-mode file, or, when asked for, in several that follow one another.
//
// Each file of a series is a list-mode file like any other, with a header, blocks, index and trailer of its
// own; one after the other they hold the records in order. A block is never divided.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "daemon/listmode_file.hpp"
#include "daemon/listmode_format.hpp"

namespace petacq::daemon {

/// Where a new file begins. Nothing set: there is one file, whatever its size.
struct SplitOptions {
    std::uint64_t bytes = 0;  ///< a file with more blocks than one does not grow above; 0: no limit
    std::uint64_t ticks = 0;  ///< the blocks of a file begin within so many of its first record; 0: no limit

    [[nodiscard]] bool any() const { return bytes != 0 || ticks != 0; }
};

/// What run.json says of a file.
struct ListModePart {
    std::string name;
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;
    std::uint64_t first_time = 0;  ///< ticks, of its first record; 0 when it has none, as the next
    std::uint64_t last_time = 0;
};

/// One thread at a time. Throws and closes as ListModeFile does.
class ListModeSeries {
  public:
    /// `path` is that of the only file; the parts of a series are PATH-0001.plm, PATH-0002.plm, ... without
    /// its extension.
    ListModeSeries(const std::filesystem::path& path, RecordKind kind, std::uint32_t block_bytes,
                   nlohmann::json description, const SplitOptions& split, FileCalls calls = {});

    void write_block(std::span<std::byte> block);
    void sync() { file_->sync(); }
    void close();

    /// Of all files together.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_before_ + file_->bytes(); }
    [[nodiscard]] std::vector<ListModePart> parts() const;

  private:
    void open_next();
    [[nodiscard]] bool must_split(std::span<const std::byte> block) const;

    const std::filesystem::path path_;
    const RecordKind kind_;
    const std::uint32_t block_bytes_;
    const nlohmann::json description_;
    const SplitOptions split_;
    const FileCalls calls_;
    std::unique_ptr<ListModeFile> file_;
    std::uint64_t bytes_before_ = 0;
    std::vector<ListModePart> finished_;
    ListModePart current_;
};

}  // namespace petacq::daemon

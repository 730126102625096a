// Writes the records of a run to one list-mode file, or, when configured, to several that follow one another.
//
// Each file of a series is an ordinary list-mode file with its own header, blocks, index and trailer. Read
// one after the other, they hold the records in order. A block is never divided.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "daemon/listmode/file.hpp"
#include "daemon/listmode/format.hpp"

namespace petacq::daemon {

/// When a new file starts. Without a limit there is one file, whatever its size.
struct SplitOptions {
    std::uint64_t bytes = 0;  ///< largest file size, unless a single block is larger; 0: no limit
    std::uint64_t ticks =
        0;  ///< every block starts less than this after the file's first record; 0: no limit

    [[nodiscard]] bool any() const { return bytes != 0 || ticks != 0; }
};

/// A file as run.json describes it.
struct ListModePart {
    std::string name;
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;
    std::uint64_t first_time = 0;  ///< ticks, of its first record; 0 without records
    std::uint64_t last_time = 0;   ///< ticks, of its last record; 0 without records
};

/// One thread at a time. Throws as ListModeFile does.
class ListModeSeries {
  public:
    /// Writes NAME.plm, as `path` says, or, with a limit, NAME-0001.plm, NAME-0002.plm, ...
    ListModeSeries(const std::filesystem::path& path, RecordKind kind, std::uint32_t block_bytes,
                   const nlohmann::json& description, const SplitOptions& split);

    void write_block(std::span<std::byte> block);
    void sync() { file_->sync(); }
    void close();
    /// Looks at the current file and, at each call, at one of those before it. Throws if another program has
    /// removed, replaced or cut it.
    void check();
    /// The identity of each file, in the order of the files.
    [[nodiscard]] std::vector<FileIdentity> identities() const;

    /// Sum over all files.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_before_ + file_->bytes(); }
    [[nodiscard]] std::vector<ListModePart> parts() const;

  private:
    void open_next();
    [[nodiscard]] bool must_split(std::span<const std::byte> block) const;

    const std::filesystem::path path_;
    const RecordKind kind_;
    const std::uint32_t block_bytes_;
    const std::shared_ptr<const nlohmann::json> description_;
    const SplitOptions split_;
    std::unique_ptr<ListModeFile> file_;
    std::uint64_t bytes_before_ = 0;
    std::vector<ListModePart> finished_;
    std::vector<FileIdentity> finished_identities_;
    std::size_t checked_ = 0;  ///< which of them check() looks at next
    ListModePart current_;
};

}  // namespace petacq::daemon

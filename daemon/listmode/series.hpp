// The files of a run's records: one or several side by side (a set), and, when configured, further ones that
// follow them.
//
// The files that are written at the same time are a part. Block b of a part of N files is in its file b mod
// N. All files of a part end at the same block. Read one after the other, the parts hold the records in
// order. A block is never divided.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/choices.hpp"
#include "daemon/listmode/file.hpp"
#include "daemon/listmode/format.hpp"

namespace petacq::daemon {

/// When a new part starts. Without a limit there is one, whatever its size.
struct SplitOptions {
    std::uint64_t bytes = 0;  ///< largest file size before compression, unless a single block is larger; 0:
                              ///< no limit
    std::uint64_t ticks =
        0;  ///< every block starts less than this after the part's first record; 0: no limit

    [[nodiscard]] bool any() const { return bytes != 0 || ticks != 0; }
};

/// The part of a run that a closed file holds.
struct PartTimes {
    std::optional<std::uint64_t> from;       ///< of its first record, ticks; absent: it is in the first part
    std::optional<std::uint64_t> to;         ///< of the first record of the next part; absent: there is none
    std::optional<std::uint64_t> last_time;  ///< of its last record
};
/// Makes the closing description of a file. The writing threads call it.
using Closing = std::function<nlohmann::json(const PartTimes&)>;

/// The names and headers of all files. Parts and files are counted from 0.
struct ListModeLayout {
    /// NAME.plm stands for itself, or, with a limit, for NAME-0001.plm, NAME-0002.plm, ... Each of these is a
    /// file, or, if there are several side by side, a set.
    std::filesystem::path path;
    RecordKind kind = RecordKind::coincidences;
    std::uint32_t block_bytes = 0;
    std::shared_ptr<const nlohmann::json> description;
    SplitOptions split;
    std::uint32_t files = 1;  ///< side by side
    config::Compression compression = config::Compression::none;
    bool on_first_record = false;  ///< the first part starts with the first record
    Closing closing = {};          ///< empty: the files have no closing description

    [[nodiscard]] std::filesystem::path path_of(std::size_t part, std::uint32_t file) const;
    [[nodiscard]] nlohmann::json description_of(std::size_t part, std::uint32_t file) const;
};

/// Where a block goes.
struct BlockPlace {
    std::size_t part = 0;
    std::uint32_t file = 0;
    std::uint64_t number = 0;        ///< in its part
    std::uint64_t first_record = 0;  ///< number of records of its part before it
};

/// Gives the blocks of a run their places. One thread at a time.
class BlockPlan {
  public:
    /// Throws std::invalid_argument as make_file_header does.
    explicit BlockPlan(ListModeLayout layout);

    /// The place of the next block: a new part starts if the limits ask for one.
    BlockPlace place(std::uint64_t first_time, std::uint64_t records);
    [[nodiscard]] const ListModeLayout& layout() const { return layout_; }
    /// The part and file of the next block if no new part starts.
    [[nodiscard]] std::size_t part() const { return next_.part; }
    [[nodiscard]] std::uint32_t next_file() const { return next_.file; }

  private:
    void start_part();
    [[nodiscard]] bool must_split(std::uint64_t first_time, std::uint64_t bytes) const;

    const ListModeLayout layout_;
    BlockPlace next_;
    std::vector<std::uint64_t> bytes_;  ///< of each file of the part
    std::uint64_t start_time_ = 0;      ///< of the part
};

/// A file as run.json describes it.
struct ListModePart {
    std::string name;
    std::uint64_t first_record = 0;  ///< number in the run of its first record
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;
    std::uint64_t first_time = 0;  ///< ticks, of its first record; 0 without records
    std::uint64_t last_time = 0;   ///< ticks, of its last record; 0 without records
};

/// One file of each part. One thread at a time. Throws as ListModeFile does.
class ListModeSeries {
  public:
    /// Creates that file of the first part, unless the layout leaves it to the first block.
    ListModeSeries(ListModeLayout layout, std::uint32_t file);

    /// REQUIRES: the block belongs to this part and file. `first_record`: number in the run.
    void write_block(const BlockOfRecords& block, std::uint64_t first_record);
    /// Closes the file and creates that of the next part. `first_record`: number in the run of the first
    /// record of that part, which has the time `first_time`.
    void start_part(std::uint64_t first_record, std::uint64_t first_time);
    void sync() {
        if (file_) file_->sync();
    }
    void close() { close(std::nullopt); }
    /// Removes the file of the first part. REQUIRES: no other part was started.
    void discard() noexcept {
        if (file_) file_->discard();
    }
    /// Looks at the current file and, at each call, at one of those before it. Throws if another program has
    /// removed, replaced or cut it.
    void check();
    /// The identity of each file, in the order of the parts.
    [[nodiscard]] std::vector<FileIdentity> identities() const;

    [[nodiscard]] std::size_t part() const { return parts_.empty() ? 0 : parts_.size() - 1; }
    /// Sum over all parts.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_before_ + (file_ ? file_->bytes() : 0); }
    [[nodiscard]] std::vector<ListModePart> parts() const;

  private:
    void open(std::uint64_t first_record);
    void close(std::optional<std::uint64_t> next_part);

    const ListModeLayout layout_;
    const std::uint32_t number_;
    std::unique_ptr<ListModeFile> file_;      ///< nullptr: nothing has been written yet
    std::optional<std::uint64_t> part_time_;  ///< of the first record of the part; absent: the first part
    std::uint64_t bytes_before_ = 0;
    std::vector<ListModePart> parts_;  ///< up to the current one
    std::vector<FileIdentity> finished_;
    std::size_t checked_ = 0;  ///< which of them check() looks at next
};

}  // namespace petacq::daemon

// The records of one kind, of a file or of all files of a run, block after block.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "daemon/listmode/reader.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {

/// Not thread-safe.
class RecordSource {
  public:
    /// `target`: a file or a run directory. Throws as record_files() and ListModeReader do, and
    /// daemon::NotListMode when a file holds another kind.
    RecordSource(const std::filesystem::path& target, daemon::RecordKind kind);
    ~RecordSource();

    /// Before the first next(): restricts it to blocks with times in [from, to). The index tells which blocks
    /// those are; the others are neither read nor checked.
    void select(std::uint64_t from, std::uint64_t to);

    /// Before the first next(): takes a file that ends before its index, that of a run that was interrupted.
    void take_truncated() { takes_truncated_ = true; }

    /// Reads the next block. False at the end. Throws BadInput when a file turns out to be damaged or
    /// incomplete: the output would then lack records.
    bool next();
    [[nodiscard]] const daemon::ListModeReader& reader() const { return *reader_; }
    /// The description in the first file.
    [[nodiscard]] const nlohmann::json& description() const { return *description_; }
    /// What the records of all files cover. Throws BadInput.
    [[nodiscard]] const daemon::Coverage& coverage() const;
    [[nodiscard]] std::uint32_t block_bytes() const { return block_bytes_; }
    /// All records of the files opened so far, selected or not. Complete once next() has returned false.
    [[nodiscard]] std::uint64_t records_in_files() const { return records_in_files_; }
    [[nodiscard]] std::uint64_t total_bytes() const { return total_bytes_; }
    [[nodiscard]] std::uint64_t bytes_done() const { return bytes_done_ + reader_->bytes_done(); }

  private:
    void open();

    const std::filesystem::path target_;
    daemon::RecordKind kind_;
    std::vector<std::filesystem::path> files_;
    mutable std::optional<daemon::Coverage> coverage_;  ///< absent: nobody has asked for it
    std::size_t current_ = 0;
    std::unique_ptr<daemon::ListModeReader> reader_;
    std::unique_ptr<nlohmann::json> description_;
    std::uint32_t block_bytes_ = 0;
    std::uint64_t total_bytes_ = 0;
    std::uint64_t bytes_done_ = 0;
    std::uint64_t records_in_files_ = 0;
    std::uint64_t from_ = 0;  // selected ticks
    std::uint64_t to_ = UINT64_MAX;
    bool takes_truncated_ = false;
};

/// Finds records that a sound writer does not write, which CRCs do not reveal: of one file after the other,
/// or of a part of one. Not thread-safe.
struct RecordCheck {
    std::uint64_t crystals;
    std::uint64_t end;       ///< latest time in the index
    std::uint64_t last = 0;  ///< time of the previous record

    bool good(const gpu::Coincidence& c) {
        const bool in_order = c.time >= std::exchange(last, c.time) && c.time <= end;
        return in_order && c.crystal_a < crystals && c.crystal_b < crystals && c.kind <= gpu::Kind::delayed;
    }
    bool good(const gpu::Single& s) {
        return s.time >= std::exchange(last, s.time) && s.time <= end && s.crystal < crystals;
    }
    bool good(const gpu::Triple& t) {
        return good(t.pair) && t.gamma_crystal < crystals && t.third <= gpu::ThirdPhoton::delayed;
    }
    bool good(const gpu::Tag& t) { return t.time >= std::exchange(last, t.time) && t.time <= end; }
    /// `first`: the number of the first of them. Throws BadInput.
    template <class Record>
    void all(std::span<const Record> records, const std::filesystem::path& file, std::uint64_t first) {
        for (std::size_t i = 0; i < records.size(); ++i) {
            if (good(records[i])) continue;
            throw BadInput(file.string() + ": record " + std::to_string(first + i) +
                           " is out of time order, or has a crystal of " + std::to_string(crystals) +
                           " or above, or is neither prompt nor delayed; petlm verify names the problem");
        }
    }
};

/// The records of the block that the reader is at.
template <class Record>
std::span<const Record> records_of(const daemon::ListModeReader& reader) {
    if constexpr (std::is_same_v<Record, gpu::Coincidence>) {
        return reader.coincidences();
    } else if constexpr (std::is_same_v<Record, gpu::Tag>) {
        return reader.tags();
    } else if constexpr (std::is_same_v<Record, gpu::Triple>) {
        return reader.triples();
    } else {
        return reader.singles();
    }
}

/// Calls `use` with a record of that kind, for its type.
template <class Use>
auto with_record_of(daemon::RecordKind kind, Use&& use) {
    switch (kind) {
        case daemon::RecordKind::singles:
            return use(gpu::Single{});
        case daemon::RecordKind::tags:
            return use(gpu::Tag{});
        case daemon::RecordKind::triples:
            return use(gpu::Triple{});
        default:
            return use(gpu::Coincidence{});
    }
}

/// Calls `use` with the span of the records of the block that the reader is at.
template <class Use>
auto with_records(const daemon::ListModeReader& reader, Use&& use) {
    return with_record_of(reader.kind(),
                          [&](auto record) { return use(records_of<decltype(record)>(reader)); });
}

}  // namespace petacq::petlm

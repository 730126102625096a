// The records of one kind, of a file or of all files of a run, block after block.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "daemon/listmode_reader.hpp"

namespace petacq::petlm {

/// One thread at a time.
class RecordSource {
  public:
    /// Of `target`, a file or a run directory. Throws as record_files() and ListModeReader do, and
    /// daemon::NotListMode when a file holds the other kind.
    RecordSource(const std::filesystem::path& target, daemon::RecordKind kind);

    /// Before the first next(): only blocks that hold something of from <= time < to. The others are passed
    /// over by the index, and not checked.
    void select(std::uint64_t from, std::uint64_t to);

    /// The next whole block. False at the end. Throws BadInput when a file turns out damaged or not complete:
    /// what was made of it so far is not all.
    bool next();
    [[nodiscard]] const daemon::ListModeReader& reader() const { return *reader_; }
    /// Of the first file.
    [[nodiscard]] const nlohmann::json& description() const { return description_; }
    [[nodiscard]] std::uint32_t block_bytes() const { return block_bytes_; }
    /// Of the files gone through, whatever is selected; all of them when next() has returned false.
    [[nodiscard]] std::uint64_t records_in_files() const { return records_in_files_; }
    [[nodiscard]] std::uint64_t total_bytes() const { return total_bytes_; }
    [[nodiscard]] std::uint64_t bytes_done() const { return bytes_done_ + reader_->block_offset(); }

  private:
    void open();

    daemon::RecordKind kind_;
    std::vector<std::filesystem::path> files_;
    std::size_t current_ = 0;
    std::unique_ptr<daemon::ListModeReader> reader_;
    nlohmann::json description_;
    std::uint32_t block_bytes_ = 0;
    std::uint64_t total_bytes_ = 0;
    std::uint64_t bytes_done_ = 0;
    std::uint64_t records_in_files_ = 0;
    std::uint64_t from_ = 0;  // ticks; what is selected
    std::uint64_t to_ = UINT64_MAX;
};

}  // namespace petacq::petlm

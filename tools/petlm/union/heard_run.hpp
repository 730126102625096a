// A run of one of the hosts that heard one stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "daemon/coverage/coverage.hpp"
#include "daemon/coverage/intervals.hpp"
#include "tools/petlm/resort/singles/singles_files.hpp"

namespace petacq::petlm {

/// One thread at a time.
class HeardRun {
  public:
    /// Throws UsageError unless the directory has a run.json with a scanner and a configuration.
    explicit HeardRun(std::filesystem::path directory);
    ~HeardRun();
    HeardRun(const HeardRun&) = delete;
    HeardRun& operator=(const HeardRun&) = delete;

    /// Takes what has been written since. Throws as SinglesFiles::extend() does.
    void look();

    [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
    /// run.json
    [[nodiscard]] const nlohmann::json& document() const { return *document_; }
    [[nodiscard]] std::string name() const;
    /// Nobody writes it any more.
    [[nodiscard]] bool ended() const { return ended_; }
    /// nullptr: it has no file of singles, or none yet.
    [[nodiscard]] const SinglesFiles* singles() const { return singles_ ? &*singles_ : nullptr; }
    /// It has singles, and it is known where they begin.
    [[nodiscard]] bool has_begun() const;
    /// The block of this number cannot be read: the run does not cover its time.
    void leave_out(std::size_t number);
    /// What its singles cover: up to the last whole block of files that were cut off, that the disk did not
    /// take or that are still written, and without blocks that were left out. Nothing before it is known
    /// where the run began. If the files of one that has ended do not say so, it began with its first hit or
    /// tag. Throws BadInput when that tag cannot be read.
    [[nodiscard]] daemon::Coverage coverage() const;
    /// Why it has less than its run.json says; empty: it has not.
    [[nodiscard]] std::string damage() const;

  private:
    void open(bool ended);
    [[nodiscard]] bool knows_start() const;
    /// Singles that the disk did not take, after those in the files.
    [[nodiscard]] std::uint64_t unwritten() const;

    std::filesystem::path directory_;
    std::unique_ptr<nlohmann::json> document_;
    std::optional<SinglesFiles> singles_;
    bool ended_ = false;
    bool whole_files_ = false;
    std::set<std::uint64_t> blocks_left_out_;  ///< their numbers
    daemon::Intervals left_out_;
};

}  // namespace petacq::petlm

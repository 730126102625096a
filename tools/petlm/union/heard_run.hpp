// A run of one of the hosts that heard one stream.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
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
    /// A block that cannot be read: the run does not cover its time.
    void leave_out(const SinglesFiles::SinglesBlock& block);
    /// What its singles cover, once it has ended: up to the last whole block of files that were cut off or
    /// that the disk did not take, and without blocks that were left out. If its files do not say where it
    /// began, it began with its first hit or tag. Throws BadInput when that tag cannot be read.
    [[nodiscard]] daemon::Coverage coverage() const;
    /// Why it has less than its run.json says; empty: it has not.
    [[nodiscard]] std::string damage() const;

  private:
    void open(bool ended);
    /// Singles that the disk did not take, after those in the files.
    [[nodiscard]] std::uint64_t unwritten() const;

    std::filesystem::path directory_;
    std::unique_ptr<nlohmann::json> document_;
    std::optional<SinglesFiles> singles_;
    bool ended_ = false;
    bool whole_files_ = false;
    std::size_t blocks_left_out_ = 0;
    daemon::Intervals left_out_;
};

}  // namespace petacq::petlm

// The records that an export reads: those of one file, or of the files of a run as one sequence.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "daemon/coverage/coverage.hpp"
#include "daemon/listmode/reader.hpp"

namespace petacq::petlm {

/// Not thread-safe.
class ExportSource {
  public:
    /// `target`: a file, or a run directory, of which the records of a kind are taken. Opens every file once;
    /// reads no records. Throws BadInput for a file without index and for files that do not belong together,
    /// otherwise as ListModeReader does.
    explicit ExportSource(const std::filesystem::path& target,
                          daemon::RecordKind of_run = daemon::RecordKind::coincidences);
    ~ExportSource();

    [[nodiscard]] const std::filesystem::path& target() const { return target_; }
    [[nodiscard]] daemon::RecordKind kind() const { return kind_; }
    /// The description in the first file.
    [[nodiscard]] const nlohmann::json& description() const { return *description_; }
    /// What the records cover: that of all files together. Nothing else says when they were taken, for how
    /// long, and by which rules.
    [[nodiscard]] const daemon::Coverage& coverage() const { return coverage_; }
    /// run.json of the run directory, or beside the file or one directory above it, as for the phases of
    /// petlm gate, if both name the same run; otherwise null.
    [[nodiscard]] const nlohmann::json& run() const { return *run_; }
    [[nodiscard]] std::uint64_t records() const { return records_; }
    /// Ticks of the first record; 0 without records.
    [[nodiscard]] std::uint64_t first_time() const { return first_time_; }
    /// Ticks of the last record; 0 without records.
    [[nodiscard]] std::uint64_t last_time() const { return last_time_; }
    /// False if no delayed coincidences were searched for.
    [[nodiscard]] bool may_hold_delayeds() const;
    /// What the operator said at the start of the run ("operator" in run.json); null if nothing.
    [[nodiscard]] nlohmann::json said_by_operator() const;

    /// The scanner in run.json, or in the file if one is given. Throws UsageError when there is none,
    /// BadInput when its ticks or crystals are not those of the records, config::Error.
    [[nodiscard]] config::Scanner scanner(const std::optional<std::filesystem::path>& file) const;

    /// That of the same scanner; none if it stands still, or there is no description. Throws likewise.
    [[nodiscard]] std::optional<config::Rotation> rotation(
        const std::optional<std::filesystem::path>& file) const;

    /// Calls `use` with the reader at every block, in order, and shows progress that begins with `activity`
    /// on a terminal. Throws BadInput at the first defect: a damaged block, a record out of time order, a
    /// crystal of `crystals` or above, a coincidence that is neither prompt nor delayed.
    void for_each_block(std::uint64_t crystals, const std::function<void(const daemon::ListModeReader&)>& use,
                        const char* activity = "exporting") const;
    /// Number of crystals in the description; if it has none, more than any record can name.
    [[nodiscard]] std::uint64_t crystals() const;

  private:
    void look_at(const std::filesystem::path& file);

    std::filesystem::path target_;
    daemon::RecordKind kind_ = daemon::RecordKind::coincidences;
    std::unique_ptr<nlohmann::json> description_;
    std::unique_ptr<nlohmann::json> run_;
    std::vector<nlohmann::json> descriptions_;  ///< of all files, until their coverage is known
    daemon::Coverage coverage_;
    std::uint64_t records_ = 0;
    std::uint64_t first_time_ = 0;
    std::uint64_t last_time_ = 0;
};

}  // namespace petacq::petlm

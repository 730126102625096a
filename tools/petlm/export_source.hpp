// The records that an export reads: one file, or the files of a run as one sequence.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/scanner.hpp"
#include "daemon/listmode_reader.hpp"

namespace petacq::petlm {

/// The input is damaged, not complete, or contradicts itself. The message names the file.
class BadInput : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

class ExportSource {
  public:
    /// A file, or a run directory: its coincidences. Opens every file once; reads no records. Throws BadInput
    /// for a file without index and for files that do not belong together, otherwise as ListModeReader does.
    explicit ExportSource(const std::filesystem::path& target);

    [[nodiscard]] const std::filesystem::path& target() const { return target_; }
    [[nodiscard]] daemon::RecordKind kind() const { return kind_; }
    /// Of the first file.
    [[nodiscard]] const nlohmann::json& description() const { return description_; }
    /// run.json of the run directory, or of that which the file lies in when both name the same run; or null.
    [[nodiscard]] const nlohmann::json& run() const { return run_; }
    [[nodiscard]] std::uint64_t records() const { return records_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    /// Ticks, of the first and the last record; 0 without records.
    [[nodiscard]] std::uint64_t first_time() const { return first_time_; }
    [[nodiscard]] std::uint64_t last_time() const { return last_time_; }
    /// Ticks that exports count their time from: the start of the run when it is known and no record is
    /// before it, otherwise the first record.
    [[nodiscard]] std::uint64_t time_origin() const;
    /// Ticks, where the run ended; at least last_time().
    [[nodiscard]] std::uint64_t time_end() const;
    /// Picoseconds per tick of the description; none when it does not say.
    [[nodiscard]] std::optional<double> tick_ps() const;
    /// Coincidence window of the description; none when it does not say.
    [[nodiscard]] std::optional<std::uint64_t> window_ticks() const;
    /// False when the description says that the run looked for no delayed coincidences.
    [[nodiscard]] bool may_hold_delayeds() const;
    /// A value of the configuration in run.json; null when it is not there.
    [[nodiscard]] nlohmann::json configured(const std::string& pointer) const;

    /// The scanner of run.json, or of the file when one is given. Throws BadInput when its ticks or crystals
    /// are not those of the records, UsageError when there is none, config::Error.
    [[nodiscard]] config::Scanner scanner(const std::optional<std::filesystem::path>& file) const;

    /// Calls `use` with the reader at every block, in order, with progress on a terminal that begins with
    /// `activity`. Throws BadInput at
    /// the first thing that is wrong: a block that is not whole, a record out of time order, a crystal of
    /// `crystals` or above, a coincidence that is neither prompt nor delayed.
    void for_each_block(std::uint64_t crystals, const std::function<void(const daemon::ListModeReader&)>& use,
                        const char* activity = "exporting") const;
    /// Number of crystals in the description, or more than any record can name.
    [[nodiscard]] std::uint64_t crystals() const;

  private:
    void look_at(const std::filesystem::path& file);
    void find_run();

    std::filesystem::path target_;
    std::vector<std::filesystem::path> files_;
    daemon::RecordKind kind_ = daemon::RecordKind::coincidences;
    nlohmann::json description_;
    nlohmann::json run_;
    std::uint64_t records_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t first_time_ = 0;
    std::uint64_t last_time_ = 0;
};

}  // namespace petacq::petlm

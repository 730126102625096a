// A file of other software as an import sees it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "daemon/coverage/coverage.hpp"
#include "daemon/coverage/unknown.hpp"
#include "gpu/base/records.hpp"
#include "tools/petlm/import/crystal_numbers.hpp"
#include "tools/petlm/import/import.hpp"

namespace petacq::petlm {

/// Appends some of the next records of a file, in the order of the file. False at its end.
template <class Record>
using TakeRecords = std::function<bool(gpu::RecordVector<Record>&)>;

/// What is open, and what it tells beside its records.
struct ForeignFile {
    std::variant<TakeRecords<gpu::Coincidence>, TakeRecords<gpu::Single>, TakeRecords<gpu::Tag>,
                 TakeRecords<gpu::Triple>>
        records;
    std::uint64_t bytes = 0;                    ///< of the file
    std::function<std::uint64_t()> bytes_done;  ///< that have been read
    /// As far as the file tells it. Its list `unknown` has what the format cannot hold.
    daemon::Coverage coverage;
    /// The intervals that the file states, where its records have widened those of the coverage.
    std::optional<daemon::Intervals> stated{};
    std::shared_ptr<nlohmann::json> description{};  ///< members of the description of the records; null: none
    std::shared_ptr<const nlohmann::json> run{};    ///< the run.json in it; null: none
    /// Of a file that another program has made for this import: "format", "version" if it is known, and
    /// "from", the names of the files that it was made of. Null: the records are of this file.
    std::shared_ptr<const nlohmann::json> made_of{};
    /// After the last record: what was changed or left out, a sentence each.
    std::function<std::vector<std::string>()> remarks = [] { return std::vector<std::string>(); };
};

/// What a format needs to open a file.
struct ForeignInput {
    const ImportOptions& options;
    std::filesystem::path file;
    gpu::Kind kind;  ///< of pairs whose file does not tell it
    const config::Scanner& scanner;
};

/// Each opens a file of its format, and throws UsageError or BadInput, whose messages name the file and what
/// was expected; so do the functions that take records.
ForeignFile open_castor(const ForeignInput& input);
ForeignFile open_coinstruct(const ForeignInput& input);
ForeignFile open_csv(const ForeignInput& input);
ForeignFile open_hdf5(const ForeignInput& input);
ForeignFile open_petsys(const ForeignInput& input);
ForeignFile open_safir(const ForeignInput& input);

/// The scanner in a file of our export, which has the run.json of its run. Throws UsageError if it has none.
config::Scanner scanner_in_hdf5(const std::filesystem::path& file);

/// The phrases of `unknown` that several formats share.
using daemon::unknown_clock;
using daemon::unknown_dt;
using daemon::unknown_energies;
using daemon::unknown_rules;
using daemon::unknown_singles_window;
using daemon::unknown_times;

/// A pair of two singles in whichever order. Nothing if they are too far apart: `too_far_apart`.
std::optional<gpu::Coincidence> pair_of(gpu::Single a, gpu::Single b, gpu::Kind kind);
inline constexpr const char* too_far_apart =
    "the photons of a pair are 2^32 ticks apart or more; expected less";

}  // namespace petacq::petlm

// The commands of petlm. Each gives an exit status, and throws what the library throws: daemon::NotListMode,
// std::system_error for I/O.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/types.hpp"

namespace petacq::petlm {

enum Status : int {
    ok = 0,
    has_problems = 1,
    usage = 64,
    not_list_mode = 65,
    io_failure = 74,
    bad_scanner = 78
};

/// The command line asks for what cannot be done.
class UsageError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// FILE or RUNDIR.
int info(const std::filesystem::path& target, bool as_json);
/// FILE, or RUNDIR: its coincidences. CSV to standard output; ends quietly when nobody reads it any more.
int dump(const std::filesystem::path& target, std::optional<gpu::Kind> kind,
         std::optional<std::uint64_t> limit);
/// FILEs or RUNDIRs. Goes on after a bad one; the highest status of all.
int verify(const std::vector<std::filesystem::path>& targets);
/// Writes `output`, or <file without .plm>.recovered.plm when empty; never over an existing file.
int recover(const std::filesystem::path& file, std::filesystem::path output);

struct ExportOptions {
    std::string format;                            ///< castor, stir, coinstruct, csv or hdf5
    std::filesystem::path target;                  ///< file or run directory
    std::filesystem::path output;                  ///< directory of castor and stir, otherwise file
    bool force = false;                            ///< replace what is there
    std::optional<std::filesystem::path> scanner;  ///< instead of that in run.json
    std::optional<double> tof_resolution_ps;       ///< castor: write TOF; FWHM
    bool event_kind = false;                       ///< castor: write the kind of each event
    std::optional<double> depth_mm;  ///< castor, stir: where in a crystal a photon interacts on average
    bool time_from_start = false;    ///< coinstruct: ticks from the start of the run
};
/// Writes the coincidences (csv, hdf5: or singles) for other software. What the format cannot hold is said on
/// standard error and in a text beside the export. Nothing is left of an export that fails.
int export_records(const ExportOptions& options);

struct ImportOptions {
    std::string format;           ///< coinstruct
    std::filesystem::path pairs;  ///< prompts
    std::optional<std::filesystem::path> delayeds;
    std::filesystem::path output;   ///< list-mode file
    bool force = false;             ///< replace it
    std::filesystem::path scanner;  ///< scanner description
};
/// Makes a list-mode file of the pairs of another acquisition.
int import_pairs(const ImportOptions& options);

}  // namespace petacq::petlm

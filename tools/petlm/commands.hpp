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
/// Of FILE, every whole block as `output`, or <file without .plm>.recovered.plm when empty. Of RUNDIR, a
/// directory `output`, or RUNDIR.recovered: its list-mode files under their names, the whole ones as they
/// are, and its run.json. Never over what exists.
int recover(const std::filesystem::path& target, std::filesystem::path output);

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

struct PlotOptions {
    std::filesystem::path target;                  ///< run directory, or a file of coincidences
    std::filesystem::path output;                  ///< directory; empty: "plot" in that of the run
    bool force = false;                            ///< replace what is there
    std::optional<std::filesystem::path> scanner;  ///< instead of that in run.json
    std::optional<double> depth_mm;  ///< of the sinogram: where in a crystal a photon interacts on average
    std::uint32_t png_width = 1120;  ///< pixels
};
/// Writes report.html, and each picture as PNG with its numbers as CSV. Nothing is left of pictures that
/// fail. Throws UsageError in a program built without cairo.
int plot(const PlotOptions& options);

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

struct CutOptions {
    std::filesystem::path target;   ///< file or run directory
    std::filesystem::path output;   ///< list-mode file
    bool singles = false;           ///< of a run directory: its singles, not its coincidences
    std::uint64_t from = 0;         ///< ticks: records at or above it
    std::uint64_t to = UINT64_MAX;  ///< and below it
    bool force = false;             ///< replace the output
};
/// Makes a list-mode file of the records of an interval.
int cut(const CutOptions& options);

struct MergeOptions {
    std::vector<std::filesystem::path> targets;  ///< files or run directories, at least one
    std::filesystem::path output;                ///< list-mode file
    bool singles = false;                        ///< of run directories: their singles
    bool force = false;                          ///< replace the output
};
/// Makes one list-mode file, in order, of the records of several, or of the parts of a run that was split.
int merge(const MergeOptions& options);

struct ResortOptions {
    std::filesystem::path run;     ///< its directory
    std::filesystem::path output;  ///< list-mode file
    bool force = false;            ///< replace the output
    // What is absent is as the run had it.
    std::optional<std::uint32_t> window_ticks;
    std::optional<std::string> window_mode;
    std::optional<std::string> multiples_policy;
    std::optional<std::uint32_t> max_multiplicity;
    std::optional<std::uint32_t> min_module_difference;
    std::optional<std::uint32_t> max_ring_difference;
    std::optional<std::uint64_t> delay_ticks;
    bool no_delay = false;
    std::optional<double> lower_keV;  // NOLINT(readability-identifier-naming): the unit's spelling
    std::optional<double> upper_keV;  // NOLINT(readability-identifier-naming)
    std::string backend = "auto";
    std::optional<std::uint32_t> threads;
};
/// Finds the coincidences of a run again from its singles: what the run would have written with these
/// settings.
int resort(const ResortOptions& options);

struct ImageOptions {
    std::filesystem::path target;                  ///< file or run directory
    std::filesystem::path output;                  ///< directory
    bool force = false;                            ///< replace an earlier image
    std::optional<std::filesystem::path> scanner;  ///< instead of that in run.json
    std::optional<double> depth_mm;                ///< where in a crystal a photon interacts on average
    std::optional<double> voxel_mm;
    std::optional<std::uint32_t> size;  ///< voxels across
    std::optional<double> fov_mm;       ///< width across
    std::uint32_t iterations = 3;
    std::uint32_t subsets = 8;
    std::optional<double> smooth_mm;  ///< FWHM of a Gaussian afterwards
    std::string backend = "auto";     ///< auto, cpu or cuda
    std::uint32_t threads = 0;        ///< 0: one per core
    std::optional<double> max_memory_gb;
};
/// Makes a small image of the coincidences, for looking, not for quantification: NIfTI, and PNG pictures
/// where cairo was found.
int image(const ImageOptions& options);

}  // namespace petacq::petlm

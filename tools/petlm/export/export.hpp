// petlm export: records in the formats of other software. Each format is implemented in a file of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/depth_of_interaction.hpp"
#include "config/scanner/scanner.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "tools/petlm/export/petsird/options.hpp"
#include "tools/petlm/reconstruction/corrections/line_factors.hpp"
#include "tools/petlm/reconstruction/corrections/nuclide.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::petlm {

/// Randoms to be expected among the prompts of a pair of crystals. 0 for pairs that the conditions on modules
/// and rings refuse. The order of the crystals does not matter.
struct RandomsPerPair {
    /// Counts in all of the recorded time; null: unknown.
    std::function<double(std::uint32_t crystal_a, std::uint32_t crystal_b)> sum;
    /// The share of the true pairs that dead time, pile-up and lost data leave; null: unknown.
    std::function<double(std::uint32_t crystal_a, std::uint32_t crystal_b)> found;
    std::string found_sentence;  ///< about dead time and pile-up
    std::string loss_sentence = {};
    std::string sum_sentence = {};  ///< about where the randoms come from
};

struct ExportOptions : corrections::NuclideOptions {  // castor, stir
    std::string format;                               ///< one of export_formats()
    std::filesystem::path target;                     ///< file or run directory
    std::filesystem::path output;                     ///< directory for castor and stir, otherwise file
    bool force = false;                               ///< replace an earlier export
    bool as_json = false;                             ///< print what was written as JSON
    std::optional<std::filesystem::path> scanner;     ///< instead of the one in run.json
    std::optional<double> tof_resolution_ps;          ///< castor: write TOF; petsird; FWHM
    bool event_kind = false;                          ///< castor: write the kind of each event
    std::optional<double> depth_mm;  ///< castor, stir, petsird: mean depth of interaction in a crystal
    bool time_from_start = false;    ///< coinstruct: ticks from the start of the run
    /// castor, stir: write this estimate, too. Without it, that from the seconds of the run, if it has them.
    std::optional<RandomsPerPair> randoms;
    std::string no_seconds;          ///< why there is none
    corrections::LineOptions lines;  ///< castor, stir: normalisation and attenuation; petsird: the former
    std::optional<std::string>
        scatter;              ///< castor, stir: simulation or none; by default simulation with attenuation
    double max_lines_gb = 4;  ///< castor, stir: largest size of the files about all lines
    petsird::PetsirdOptions petsird;

    /// Factors of lines were asked for.
    [[nodiscard]] bool corrects_lines() const { return lines.normalisation || !lines.attenuation.empty(); }
    [[nodiscard]] bool has_randoms() const { return randoms && randoms->sum; }
};

/// The contents of an export and what its users must know.
struct Exported {
    std::uint64_t prompts = 0;
    std::uint64_t delayeds = 0;
    std::uint64_t singles = 0;
    std::uint64_t tags = 0;
    std::uint64_t triples = 0;
    std::vector<std::string> files;              ///< name and content, one line each
    std::vector<std::string> lost;               ///< what the format cannot hold, a sentence each
    std::vector<std::string> notes;              ///< how to read the numbers, a sentence each
    std::filesystem::path text;                  ///< the file with all this
    std::vector<std::filesystem::path> written;  ///< all files
    /// The crystals in the order of the format's own numbers; empty: that of petacqd's.
    std::vector<std::uint32_t> crystal_order;

    /// Adds the records of the block that the reader is at.
    void count(const daemon::ListModeReader& reader);
};

/// The names of the formats.
std::vector<std::string> export_formats();
/// Writes the coincidences (csv, hdf5: or singles) of the target, and a text that describes the export. A
/// failed export leaves nothing behind. Throws UsageError, BadInput, daemon::NotListMode, config::Error,
/// std::system_error.
Exported export_quietly(const ExportOptions& options);
/// The same, with a summary on standard output and losses on standard error. Returns an exit status.
int export_records(const ExportOptions& options);

using Exporter = Exported (*)(const ExportSource&, const ExportOptions&, Outputs&);

Exported export_castor(const ExportSource& source, const ExportOptions& options, Outputs& outputs);
Exported export_stir(const ExportSource& source, const ExportOptions& options, Outputs& outputs);
/// Throws UsageError if export_stir() cannot do what is asked for with this scanner.
void check_stir(const ExportSource& source, const ExportOptions& options);
Exported export_coinstruct(const ExportSource& source, const ExportOptions& options, Outputs& outputs);
Exported export_csv(const ExportSource& source, const ExportOptions& options, Outputs& outputs);
Exported export_hdf5(const ExportSource& source, const ExportOptions& options, Outputs& outputs);
Exported export_petsird(const ExportSource& source, const ExportOptions& options, Outputs& outputs);

/// The depth asked for, or that by the absorption of the crystals. Throws UsageError when it lies outside the
/// crystal.
config::DepthOfInteraction depth_of_interaction(std::optional<double> depth_mm,
                                                const config::Scanner& scanner);
/// Which pairs could have been recorded; all of two crystals where the rules are not known.
gpu::PairRule pair_rule(const ExportSource& source, const config::Geometry& geometry);
/// A sentence for each limit (module difference, ring difference) of the records, followed by `how`.
std::vector<std::string> limit_sentences(const ExportSource& source, const std::string& how);
/// Throws UsageError if files of `bytes` bytes about `lines` lines are more than the options allow.
void check_size_of_lines(const ExportOptions& options, std::uint64_t lines, std::uint64_t bytes);
/// The name of the scanner, with '_' for everything but letters, digits, '_' and '-'.
std::string file_name_of(const config::Scanner& scanner);

}  // namespace petacq::petlm

// petlm import: records of other software, and our own exports, as list-mode. Each format is read by a file
// of its own.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/petlm/import/declared/options.hpp"

namespace petacq::petlm {

struct ImportOptions {
    std::string format;                             ///< one of import_formats()
    std::filesystem::path input;                    ///< records; of pairs, prompts
    std::optional<std::filesystem::path> delayeds;  ///< castor, coinstruct, csv: another file
    std::filesystem::path output;                   ///< NAME.plm: a list-mode file; otherwise a run directory
    bool force = false;                             ///< replace the output
    bool as_json = false;                           ///< print what was written as JSON
    std::optional<std::filesystem::path> scanner;   ///< scanner description
    std::optional<std::filesystem::path> crystals;  ///< which crystal each number of the file is
    std::string columns;                            ///< csv: of a file of other software
    std::string records;                            ///< petsys: what the file holds
    std::optional<double> keV_per_unit;             // NOLINT(readability-identifier-naming): a unit
    Declared declared;
};

/// The names of the formats.
std::vector<std::string> import_formats();
/// Makes a list-mode file, or a run, of the records of a file. Returns an exit status. Throws UsageError,
/// BadInput, config::Error, std::system_error.
int import_records(const ImportOptions& options);

}  // namespace petacq::petlm

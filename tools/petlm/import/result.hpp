// What an import writes beside the records: their description, and the run.json of a run.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "config/scanner/scanner.hpp"
#include "daemon/coverage/coverage.hpp"
#include "daemon/listmode/series.hpp"
#include "tools/petlm/import/declared/declared.hpp"
#include "tools/petlm/import/foreign_file.hpp"
#include "tools/petlm/import/import.hpp"

namespace petacq::petlm {

/// Whether the output is a list-mode file; otherwise it is the directory of a run, as for petlm resort.
bool is_file_of_import(const std::filesystem::path& output);
/// The coverage of the records: what the files tell, and of which scanner they are.
daemon::Coverage coverage_of_import(const ImportOptions& options, std::span<const ForeignFile> files,
                                    const config::Scanner& scanner);
/// The description in the list-mode file. Its member "imported" says of which files and format the records
/// are, and what was declared.
nlohmann::json description_of_import(const ImportOptions& options, std::span<const ForeignFile> files,
                                     const config::Scanner& scanner, const WithDeclared& with);
/// run.json of a run with one list-mode file of this description. Its configuration has what is known of the
/// records, and nothing of a daemon.
nlohmann::json run_of_import(const ImportOptions& options, std::span<const ForeignFile> files,
                             const config::Scanner& scanner, const daemon::Coverage& coverage,
                             const nlohmann::json& description, daemon::RecordKind kind,
                             const daemon::ListModePart& part);

}  // namespace petacq::petlm

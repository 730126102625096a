// The commands that are implemented outside main.cpp. Each returns an exit status (base/status.hpp) and
// throws UsageError, BadInput, daemon::NotListMode, config::Error, or std::system_error for I/O.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gpu/base/records.hpp"

namespace petacq::petlm {

struct InfoOptions {
    std::filesystem::path target;  ///< file or run directory
    bool as_json = false;
};
/// Describes a file, or the files of a run directory, on standard output.
int info(const InfoOptions& options);

struct DumpOptions {
    std::filesystem::path target;        ///< file, or run directory: its coincidences
    std::optional<gpu::Kind> kind;       ///< only pairs of this kind
    bool singles = false;                ///< of a run directory, its singles
    bool triples = false;                ///< of a run directory, its triples
    bool seconds = false;                ///< of a run directory, its seconds
    std::optional<std::string> field;    ///< of seconds: this field instead of all that are one number
    std::optional<std::uint64_t> limit;  ///< at most this many records
    bool as_json = false;                ///< JSON Lines: an object for each record
};
/// Prints records as CSV, or as JSON Lines, on standard output. Ends quietly when the reader of standard
/// output goes away.
int dump(const DumpOptions& options);

struct VerifyOptions {
    std::vector<std::filesystem::path> targets;  ///< files or run directories
    bool as_json = false;
};
/// Checks files or run directories, all of them even if one is bad. Returns the highest status of all.
int verify(const VerifyOptions& options);

}  // namespace petacq::petlm

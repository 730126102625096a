// The reports that `petlm plot` has made in the directories of runs: RUN/plot/FILE.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace petacq::daemon {

/// One file of the report of a run.
struct ReportFile {
    std::string run;
    std::string name;
    const char* type;  ///< of its content, for HTTP
};

/// The file that the path "/reports/RUN/NAME" names. Absent unless RUN is a run id and NAME is a plain name
/// that ends in .html, .png, .svg, .json or .csv: no other file of a run can be named.
std::optional<ReportFile> report_file(std::string_view path);

/// The content of the file; nullptr if there is none, it is no regular file, or it is larger than 32 MiB.
/// Follows no symbolic link below `data_dir`. Reading may take long.
std::shared_ptr<const std::string> read_report(const std::filesystem::path& data_dir, const ReportFile& file);

}  // namespace petacq::daemon

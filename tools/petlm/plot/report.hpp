// The report: one HTML file with all pictures and tables in it, that loads nothing.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/petlm/plot/pictures.hpp"

namespace petacq::petlm {

/// Writes the partial file of `file` (export_output.hpp). `description`: of the list-mode; `run`: run.json,
/// or null. Both are shown as text, whatever is in them. Throws as OutputFile and svg_of do.
void write_report(const std::filesystem::path& file, const std::string& target,
                  const nlohmann::json& description, const nlohmann::json& run, const PictureData& data,
                  const std::vector<Picture>& pictures);

}  // namespace petacq::petlm

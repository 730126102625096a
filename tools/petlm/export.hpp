// The formats of `petlm export`, each in a file of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tools/petlm/commands.hpp"
#include "tools/petlm/export_output.hpp"
#include "tools/petlm/export_source.hpp"

namespace petacq::petlm {

/// What became of the records, and what whoever uses the export has to know.
struct Exported {
    std::uint64_t prompts = 0;
    std::uint64_t delayeds = 0;
    std::uint64_t singles = 0;
    std::vector<std::string> files;  ///< one line each: name and content
    std::vector<std::string> lost;   ///< what the format cannot hold, a sentence each
    std::vector<std::string> notes;  ///< how to read the numbers, a sentence each
    std::filesystem::path text;      ///< where the text with all this goes
};

/// What export_records() does, without a word of it.
Exported export_quietly(const ExportOptions& options);

using Exporter = Exported (*)(const ExportSource&, const ExportOptions&, ExportOutputs&);

Exported export_castor(const ExportSource& source, const ExportOptions& options, ExportOutputs& outputs);
Exported export_stir(const ExportSource& source, const ExportOptions& options, ExportOutputs& outputs);
Exported export_coinstruct(const ExportSource& source, const ExportOptions& options, ExportOutputs& outputs);
Exported export_csv(const ExportSource& source, const ExportOptions& options, ExportOutputs& outputs);
Exported export_hdf5(const ExportSource& source, const ExportOptions& options, ExportOutputs& outputs);

/// Whole milliseconds in that many ticks.
inline std::uint64_t milliseconds(std::uint64_t ticks, double tick_ps) {
    // Multiplied first: the product is exact as long as it fits, and the quotient then right at whole ones.
    return static_cast<std::uint64_t>(std::min(static_cast<double>(ticks) * tick_ps / 1e9, 0x1p63));
}

/// The depth asked for, or half a crystal. Throws UsageError when it lies outside of the crystal.
double depth_of_interaction(std::optional<double> depth_mm, const config::Scanner& scanner);
/// Sentences about the limits in module and ring difference that the run had, where there were any.
std::vector<std::string> limit_sentences(const ExportSource& source, const std::string& how);
/// A sentence about that depth.
std::string depth_sentence(const ExportOptions& options, const config::Scanner& scanner);
/// The name of the scanner with nothing but letters, digits, '_' and '-'.
std::string file_name_of(const config::Scanner& scanner);
/// "1.234" the shortest way.
std::string number_text(double value);

}  // namespace petacq::petlm

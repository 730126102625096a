// STIR: what an iterative reconstruction needs about the lines, as projection data with parameters for
// OSMAPOSL.
#pragma once

#include <filesystem>
#include <string>

#include "config/scanner/scanner.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/export/line_model.hpp"
#include "tools/petlm/export/stir_projections.hpp"

namespace petacq::petlm {

struct StirLines {
    const config::Scanner& scanner;
    const StirDetectors& detectors;
    const StirProjections& projections;
    double depth_mm;
    std::string study;  ///< lines for the headers
    double seconds;     ///< recorded
};

/// Adds the files that write_stir_lines() may write.
void claim_stir_lines(const std::filesystem::path& directory, Outputs& outputs);
/// Throws UsageError if they would be larger than the options allow.
void check_stir_lines(const ExportOptions& options, const StirDetectors& detectors,
                      const StirProjections& projections);
/// normalisation: STIR multiplies prompts with it, and its image is then in kBq/ml. attenuation: correction
/// factors, with an object. scatter: counts, if there is an estimate. additive: randoms and scatter as STIR
/// adds them to what it projects, times both factors. osem.par: parameters.
void write_stir_lines(const std::filesystem::path& directory, const StirLines& how, const LineModel& model,
                      net::WorkerPool& pool, Exported& exported);

}  // namespace petacq::petlm

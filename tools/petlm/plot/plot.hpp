// petlm plot: a report with pictures of a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace petacq::petlm {

struct PlotOptions {
    std::filesystem::path target;                  ///< run directory, or a file of coincidences
    std::filesystem::path output;                  ///< directory; empty: "plot" in the run directory
    bool force = false;                            ///< replace earlier pictures
    bool as_json = false;                          ///< print what was written as JSON
    std::optional<std::filesystem::path> scanner;  ///< instead of the one in run.json
    std::optional<double> depth_mm;  ///< mean depth of interaction in a crystal, for the sinogram
    /// Run to compare the detector with; absent: the one in the configuration of the run, if any.
    std::optional<std::filesystem::path> reference;
    std::uint32_t png_width = 1120;  ///< pixels
};
/// Writes report.html, and each picture as PNG with its numbers as CSV; if that fails, nothing is left
/// behind. Returns an exit status. Throws UsageError (always in a program built without cairo), BadInput,
/// daemon::NotListMode, config::Error, std::system_error.
int plot(const PlotOptions& options);

}  // namespace petacq::petlm

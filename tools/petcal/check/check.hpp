// petcal check: compares a run with a reference of the same source.
#pragma once

#include <filesystem>

#include "tools/petcal/check/findings.hpp"

namespace petacq::petcal {

struct CheckOptions {
    std::filesystem::path run;        ///< run directory with spectra
    std::filesystem::path reference;  ///< empty: the one that the configuration of the run names
    std::filesystem::path report;     ///< HTML file to write; empty: none
    bool json = false;                ///< print JSON instead of text
    CheckLimits limits;
};

/// Prints what has changed and writes the report. Throws config::Error if a run cannot be used, if the two
/// cannot be compared, or if their data are insufficient; std::system_error if the report cannot be written.
Verdict check(const CheckOptions& options);

}  // namespace petacq::petcal

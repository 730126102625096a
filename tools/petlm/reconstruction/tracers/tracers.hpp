// petlm tracers: images of two tracers that were in the scanner at once.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/petlm/reconstruction/image/image.hpp"

namespace petacq::petlm {

/// Those of an image; `nuclide` is that of the tracer without prompt gammas.
struct TracerOptions : ImageOptions {
    std::string gamma_nuclide;                       ///< of the other tracer, of the table
    std::optional<std::filesystem::path> gamma_run;  ///< a run of it alone
    std::vector<std::string> gamma_run_attenuation;  ///< what attenuates in that run; empty: as in the run
    std::optional<double> gamma_efficiency;          ///< instead of a run
    std::vector<std::string> regions;                ///< name=sphere:x,y,z,r or name=mask.nii
};

/// Makes an image of each tracer, NUCLIDE.nii, with pictures, and tracers.json. Pairs with a gamma of their
/// decay belong to the tracer that emits it; how often it is found beside a pair tells how many of its pairs
/// lack one. What is left of all pairs belongs to the other tracer. Returns an exit status. Throws as
/// image() does, and daemon::NotListMode for a run without triples.
int tracers(const TracerOptions& options);

}  // namespace petacq::petlm

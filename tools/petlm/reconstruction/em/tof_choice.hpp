// Whether an image uses the time of flight.
#pragma once

#include <string>

#include "config/scanner/scanner.hpp"
#include "tools/petlm/reconstruction/projector/tof.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::image {

struct TofChoice {
    TofBins bins;
    std::string sentence;  ///< for the user
};

/// `asked`: off, the resolution in ps (FWHM of the time difference of a pair), or auto: that which the run
/// states of its calibration, if it tells anything about an object of `width_mm`. Throws UsageError for other
/// words, and if the resolution is given but the coincidence window of the records is not known.
TofChoice choose_tof(const std::string& asked, const petlm::ExportSource& source,
                     const config::Scanner& scanner, double width_mm);

}  // namespace petacq::image

// The sizes of a scanner that a source of its calibration has to fit.
#pragma once

#include "config/scanner/scanner.hpp"

namespace petacq::estimate {

struct ScannerSize {
    double inner_radius_mm = 0;  ///< from the axis to the nearest front face
    double pitch_y_mm = 0;       ///< of the largest crystals across their module
    double pitch_z_mm = 0;       ///< and along it
    double length_mm = 0;        ///< of the shortest crystals
    double low_mm = 0;           ///< z of the first crystals
    double high_mm = 0;
};
ScannerSize size_of(const config::Scanner& scanner);

}  // namespace petacq::estimate

// CASToR: the angle between two crystals from which on their pairs are recorded.
#pragma once

#include "config/scanner.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::petlm {

struct PairAngle {
    /// Between the directions of two crystals. Pairs at less were not recorded.
    double degrees = 0;
    /// All pairs of modules at more were recorded, as far as the directions of crystals decide.
    bool exact = true;
};

PairAngle pair_angle(const ExportSource& source, const config::Scanner& scanner);

}  // namespace petacq::petlm

// Which modules of a scanner in the long form pair, and for CASToR as an angle.
#pragma once

#include <cstdint>

#include "config/scanner/scanner.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::petlm {

struct PairAngle {
    /// Between the directions of two crystals. Pairs at less were not recorded.
    double degrees = 0;
    /// All pairs of modules at more were recorded, as far as the directions of crystals decide.
    bool exact = true;
};

/// Whether modules of two groups pair. Places of crystals along the axis and the field of view may refuse
/// pairs of their crystals nevertheless.
bool groups_pair(const config::PairGeometry& pairs, std::uint32_t a, std::uint32_t b,
                 std::uint32_t min_module_difference);

PairAngle pair_angle(const ExportSource& source, const config::Scanner& scanner);

}  // namespace petacq::petlm

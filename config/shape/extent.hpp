// How large a scanner is, and how fine its crystals are, for any arrangement.
#pragma once

#include "config/arrangement.hpp"

namespace petacq::config {

struct Extent {
    double bore_radius_mm = 0;       ///< from the axis to the nearest front face of those around it
    double front_radius_mm = 0;      ///< from the axis to the furthest front face; of a ring that of the bore
    double outer_radius_mm = 0;      ///< from the axis to the furthest end of a crystal
    double transaxial_pitch_mm = 0;  ///< smallest distance of neighbouring crystals across the axis
    double axial_pitch_mm = 0;       ///< and along it
};

/// Front faces count by the middles of their crystals for front_radius_mm and outer_radius_mm, by their edges
/// for the bore. Modules that face along the axis do not bound the bore.
Extent extent_of(const Scanner& scanner);

/// More than across it.
bool faces_along_axis(const Module& module);

}  // namespace petacq::config

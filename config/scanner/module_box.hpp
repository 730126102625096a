// A module of crystals as a box in space.
#pragma once

#include <array>

#include "config/scanner/arrangement.hpp"

namespace petacq::config {

/// It holds all crystals of its module. Lengths in mm.
struct ModuleBox {
    Vector3 middle{};
    std::array<Vector3, 3> axes{};  ///< unit vectors at right angles: along y, along z and outward
    std::array<double, 3> half{};   ///< half its sizes along its axes
    /// No point of it is further from its middle.
    [[nodiscard]] double reach() const;
    [[nodiscard]] std::array<Vector3, 8> corners() const;
};

/// The rectangle that holds the front faces of all layers, mm from the middle of the module.
struct FaceExtent {
    double y_low = 0;
    double y_high = 0;
    double z_low = 0;
    double z_high = 0;
};
FaceExtent face_of(const ModuleType& type);

ModuleBox box_of(const Module& module, const ModuleType& type);

/// How near it comes to the axis of the scanner; 0 if the axis passes through it.
double distance_from_axis(const ModuleBox& box);

}  // namespace petacq::config

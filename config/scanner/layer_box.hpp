// The layers of a module as boxes in space.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "config/scanner/arrangement.hpp"

namespace petacq::config {

/// Layers of a module with one face, each directly behind the one before: together they fill one box. It
/// holds all their crystals. The boxes of a scanner may touch, but do not overlap. Lengths in mm.
struct LayerBox {
    std::uint32_t module = 0;
    std::uint32_t first_layer = 0;
    std::uint32_t layers = 0;
    Vector3 middle{};
    std::array<Vector3, 3> axes{};  ///< unit vectors at right angles: along y, along z and outward
    std::array<double, 3> half{};   ///< half its sizes along its axes
    /// No point of it is further from its middle.
    [[nodiscard]] double reach() const;
    [[nodiscard]] std::array<Vector3, 8> corners() const;
};

/// Module by module, from the front; each layer is in one box.
std::vector<LayerBox> boxes_of(const std::vector<Module>& modules, const std::vector<ModuleType>& types);

/// How near it comes to the axis of the scanner; 0 if the axis passes through it.
double distance_from_axis(const LayerBox& box);

}  // namespace petacq::config

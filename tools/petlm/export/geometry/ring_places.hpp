// The extent of a scanner, and its rings: places of crystals along the axis.
#pragma once

#include <cstdint>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petlm/export/geometry/crystal_kinds.hpp"

namespace petacq::petlm {

[[nodiscard]] std::uint32_t ring_count(const config::Geometry& geometry);
/// [ring]: z of its crystals, mm, rising.
[[nodiscard]] std::vector<double> ring_places_mm(const config::Scanner& scanner);
/// From the axis to the nearest front face of a crystal.
[[nodiscard]] double inner_radius_mm(const config::Scanner& scanner);
/// Twice the distance of the ends of the crystals from the middle of the scanner.
[[nodiscard]] double axial_extent_mm(const config::Scanner& scanner, const CrystalKinds& kinds);

}  // namespace petacq::petlm

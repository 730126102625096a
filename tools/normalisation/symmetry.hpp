// The rotations and reflections that map a scanner of the long form on itself.
#pragma once

#include <cstdint>
#include <vector>

#include "config/scanner/arrangement.hpp"

namespace petacq::normalisation {

/// Where a symmetry takes a module. A crystal takes the place of that in the same layer, column and row; of
/// the mirrored column or row where the module arrives reversed.
struct ModuleImage {
    std::uint32_t module = 0;
    bool reversed_y = false;  ///< columns
    bool reversed_z = false;  ///< rows
};
/// [module]
using Symmetry = std::vector<ModuleImage>;

/// All rotations about the axis, reflections at planes through it and at the plane z = 0, and their products
/// that take each module to one of the same type. A module may arrive reversed only if its crystals, their
/// sizes included, are the same in both directions. The identity is the first. Positions agree to 1e-3 mm.
/// Empty for more than max_modules.
std::vector<Symmetry> symmetries_of(const config::Arrangement& arrangement);

/// The tables by pair of modules grow with the square of their number.
inline constexpr std::size_t max_modules = 2048;

}  // namespace petacq::normalisation

// Where the BDMs of a scanner are, as far as the search for those out of step needs it.
#pragma once

#include <cstdint>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "gpu/sectors.hpp"

namespace petacq::daemon {

/// The most modules that are compared one by one. A scanner with more has consecutive modules compared
/// together, as one: the work grows with the square of their number, and a sample has too few singles of
/// each.
inline constexpr std::uint32_t max_compared = 1024;
/// The modules that are compared as one.
inline gpu::Sectors compared_modules(const config::Geometry& geometry) {
    return gpu::Sectors::of(geometry, max_compared);
}

/// The mean over the crystals of modules that are compared as one.
struct ModulePlace {
    config::Vector3 middle_mm{};  ///< of the far ends of its crystals
    double length_mm = 0;         ///< along the axis
    /// Modules of one row are at the same z and as far from the axis; those of one line have the same place
    /// across the axis. Numbered from 0.
    std::uint32_t row = 0;
    std::uint32_t line = 0;
    bool exists = false;  ///< else the channel map has no such module, and the rest means nothing
};

/// By compared_modules().
std::vector<ModulePlace> module_places(const config::Scanner& scanner);

}  // namespace petacq::daemon

// Which voxels an image has.
#pragma once

#include "config/scanner.hpp"
#include "tools/petlm/commands.hpp"
#include "tools/petlm/image/grid.hpp"

namespace petacq::image {

/// The whole bore and the whole length of the crystals, unless the options say otherwise: voxels as wide as
/// the smaller of the pitches of the crystals, or larger, so that there are at most 256 along any axis.
/// Throws UsageError for options that cannot be.
Grid choose_grid(const config::Scanner& scanner, const petlm::ImageOptions& options);

}  // namespace petacq::image

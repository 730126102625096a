// PNG pictures of an image, for the eye.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "tools/petlm/image/grid.hpp"

namespace petacq::image {

/// Why no pictures can be drawn; nothing when they can.
std::optional<std::string> no_pictures_reason();

/// Both write to the partial file of `file` (ExportOutputs), grey levels from white, 0, to black, the value
/// below which 99.5 % of what is shown and above 0 lies; `caption` goes below. They throw std::system_error.
///
/// The largest value along z (x to the right, y up: seen from +z), along y (x right, z up) and along x (y
/// right, z up), with scales in mm.
void write_projections(const std::filesystem::path& file, const Grid& grid, std::span<const float> image,
                       const std::string& caption);
/// Up to 20 transaxial slabs one after the other along z, each the mean of its planes, seen from +z.
void write_slices(const std::filesystem::path& file, const Grid& grid, std::span<const float> image,
                  const std::string& caption);

}  // namespace petacq::image

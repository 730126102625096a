// PNG pictures of an image.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "tools/petlm/reconstruction/projector/grid.hpp"

namespace petacq::image {

/// What stands beside and below the pictures.
struct PictureTexts {
    std::string unit;     ///< above the grey scale
    std::string warning;  ///< first line of the caption
    std::string values;   ///< what the values are
};

/// Only with cairo (report::with_cairo). Both functions write the partial file of `file` (Outputs), with a
/// bar that shows the grey scale (grey_scale.hpp; `black` as there) and with the texts. Both throw
/// std::system_error, and std::runtime_error when cairo fails.
///
/// The largest value along z (x to the right, y up: seen from +z), along y (x right, z up) and along x (y
/// right, z up), with scales in mm.
void write_projections(const std::filesystem::path& file, const Grid& grid, std::span<const float> image,
                       const PictureTexts& texts, std::optional<double> black);
/// Up to 20 consecutive transaxial slabs along z, each the mean of its planes, seen from +z.
void write_slices(const std::filesystem::path& file, const Grid& grid, std::span<const float> image,
                  const PictureTexts& texts, std::optional<double> black);

}  // namespace petacq::image

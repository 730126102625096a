// NIfTI-1, one file (.nii): https://nifti.nimh.nih.gov/nifti-1/ (nifti1.h).
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "tools/petlm/projector/grid.hpp"

namespace petacq::image {

/// Writes 32-bit floats, little-endian, x fastest, to the partial file of `file` (Outputs). qform and
/// sform both give the position of voxel (0, 0, 0) in mm in the scanner's axes: code 1, "scanner". The axes
/// are those of docs/reference/geometry.md and do not define a patient's left and right. At most 79
/// characters of `description` are kept. Throws std::system_error.
void write_nifti(const std::filesystem::path& file, const Grid& grid, std::span<const float> image,
                 const std::string& description);

}  // namespace petacq::image

// NIfTI-1, one file (.nii): https://nifti.nimh.nih.gov/nifti-1/ (nifti1.h).
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tools/petlm/projector/grid.hpp"

namespace petacq::image {

/// Writes 32-bit floats, little-endian, x fastest, to the partial file of `file` (Outputs). qform and
/// sform both give the position of voxel (0, 0, 0) in mm in the scanner's axes: code 1, "scanner". The axes
/// are those of docs/reference/geometry.md and do not define a patient's left and right. At most 79
/// characters of `description` are kept. Throws std::system_error.
void write_nifti(const std::filesystem::path& file, const Grid& grid, std::span<const float> image,
                 const std::string& description);

/// An image of any program. Voxel (x, y, z) has the index (z * n[1] + y) * n[0] + x.
struct Volume {
    std::array<std::size_t, 3> n{};
    std::array<double, 3> voxel_mm{};
    std::array<double, 3> origin_mm{};  ///< middle of voxel (0, 0, 0)
    std::vector<float> values;

    [[nodiscard]] double centre(std::size_t axis, std::size_t i) const {
        return origin_mm[axis] + static_cast<double>(i) * voxel_mm[axis];
    }
};

/// Reads one volume from a .nii file, little-endian and not compressed, of 16-bit or 32-bit integers, or
/// floats of 32 or 64 bits, with its scale. Its axes must be those of the scanner: an sform or a qform that
/// turns them is refused. Without either, the middle of the image is the origin. Throws petlm::BadInput for
/// anything else, config::IoError when the file cannot be read.
Volume read_nifti(const std::filesystem::path& file);

}  // namespace petacq::image

// NIfTI-1 in one file (.nii): https://nifti.nimh.nih.gov/nifti-1/ (nifti1.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"

namespace petacq::nifti {

using config::Vector3;

/// Voxels, x fastest, and where they are in the axes of the scanner (docs/reference/geometry.md).
struct Volume {
    std::array<std::uint32_t, 3> n{};  ///< along the axes of the voxels
    std::array<Vector3, 3> step{};     ///< [axis of the voxels] from a voxel to the next, mm
    Vector3 first{};                   ///< middle of voxel (0, 0, 0), mm
    std::vector<float> values;

    [[nodiscard]] std::size_t voxels() const { return std::size_t{n[0]} * n[1] * n[2]; }
    /// The middle of a voxel, mm.
    [[nodiscard]] Vector3 at(std::size_t x, std::size_t y, std::size_t z) const {
        Vector3 out = first;
        for (std::size_t axis = 0; axis < 3; ++axis)
            out[axis] += static_cast<double>(x) * step[0][axis] + static_cast<double>(y) * step[1][axis] +
                         static_cast<double>(z) * step[2][axis];
        return out;
    }
    [[nodiscard]] double voxel_mm3() const;
};

/// Reads a volume of any of the types of whole and floating-point numbers up to 64 bits, scaled as its header
/// says, with positions by sform or, without one, qform. Throws config::IoError when the file cannot be read,
/// and config::Error naming the file, what was expected and what was found: another format, compression,
/// the other byte order, more than one volume, a truncated file, no position, values that are not finite.
Volume load(const std::filesystem::path& file);

/// Volumes of the same place, one after the other in a file.
struct Series {
    std::size_t volumes = 1;
    double start_s = 0;
    double step_s = 0;  ///< from a volume to the next
};

/// The 352 bytes in front of the values of a file of 32-bit floats, little-endian. qform and sform both give
/// the position, with code 1 (scanner). At most 79 characters of `description` are kept. Absent `series`: of
/// one volume, without time. Throws std::invalid_argument when the axes of the voxels are not those of the
/// scanner, or there are more than 32,767 voxels along an axis, or volumes.
std::string header(const Volume& volume, const std::string& description,
                   const std::optional<Series>& series = std::nullopt);

}  // namespace petacq::nifti

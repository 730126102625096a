#include "tools/nifti/nifti.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <string>
#include <system_error>

#include "config/error.hpp"
#include "config/file.hpp"

namespace petacq::nifti {

namespace {

static_assert(std::endian::native == std::endian::little);

void require(bool good, const std::filesystem::path& file, const std::string& expected,
             const std::string& found) {
    if (!good) throw config::Error(file.string() + ": expected " + expected + ", found " + found);
}

/// Checks the header and takes the shape from it.
Image shape_of(const Header& h, const std::filesystem::path& file) {
    require(h.sizeof_hdr == 348 && std::equal(h.magic, h.magic + 4, "n+1"), file, "a NIfTI-1 file (n+1)",
            "something else");
    require(h.datatype == 16 && h.bitpix == 32, file, "32-bit floats (type 16)",
            "type " + std::to_string(h.datatype));
    require(h.dim[0] == 3, file, "3 dimensions", std::to_string(h.dim[0]));
    require(h.vox_offset == 352 && (h.scl_slope == 0 || (h.scl_slope == 1 && h.scl_inter == 0)), file,
            "values without scale from byte 352 on", "others");
    require(h.sform_code > 0, file, "a place in the scanner (sform)", "none");
    Image image;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        require(h.dim[axis + 1] > 0, file, "at least one voxel along each axis",
                std::to_string(h.dim[axis + 1]));
        image.n[axis] = static_cast<std::uint32_t>(h.dim[axis + 1]);
        image.voxel_mm[axis] = h.srow[axis][axis];
        image.origin_mm[axis] = h.srow[axis][3];
        require(std::isfinite(image.voxel_mm[axis]) && image.voxel_mm[axis] > 0 &&
                    std::isfinite(image.origin_mm[axis]),
                file, "voxels of a size above 0 mm", std::to_string(image.voxel_mm[axis]));
        for (std::size_t other = 0; other < 3; ++other)
            require(other == axis || h.srow[axis][other] == 0, file, "axes along those of the scanner",
                    "others");
    }
    return image;
}

}  // namespace

Image read(const std::filesystem::path& file) {
    const config::FilePointer in = config::open_for_reading(file);
    Header header;
    require(std::fread(&header, sizeof header, 1, in.get()) == 1, file, "a NIfTI-1 file", "a shorter file");
    Image image = shape_of(header, file);
    const std::size_t voxels = std::size_t{image.n[0]} * image.n[1] * image.n[2];
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(file, error);
    const std::uintmax_t expected = sizeof header + voxels * sizeof(float);
    require(!error && bytes == expected, file, std::to_string(expected) + " bytes",
            std::to_string(error ? 0 : bytes));
    image.values.resize(voxels);
    if (std::fread(image.values.data(), sizeof(float), voxels, in.get()) != voxels)
        throw config::IoError(file.string() + ": cannot be read");
    return image;
}

}  // namespace petacq::nifti

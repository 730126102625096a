// Damaged and foreign image files.
#include "tools/nifti/nifti.hpp"

#include <cstring>
#include <limits>
#include <string>

#include "config/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

namespace petacq::test {

namespace {

nifti::Header header() {
    nifti::Header h;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        h.dim[axis + 1] = static_cast<std::int16_t>(2 + axis);
        h.srow[axis][axis] = 0.5F;
        h.srow[axis][3] = static_cast<float>(axis);
    }
    return h;
}

std::string bytes_of(const nifti::Header& h, std::size_t voxels) {
    std::string bytes(reinterpret_cast<const char*>(&h), sizeof h);
    for (std::size_t i = 0; i < voxels; ++i) {
        const auto value = static_cast<float>(i);
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return bytes;
}

}  // namespace

TEST_CASE("nifti: an image is read back, anything else is refused") {
    const TemporaryDirectory dir;
    const auto file = dir / "i.nii";
    write_file(file, bytes_of(header(), 24));
    const nifti::Image image = nifti::read(file);
    CHECK(image.n == std::array<std::uint32_t, 3>{2, 3, 4});
    CHECK(image.voxel_mm == std::array<double, 3>{0.5, 0.5, 0.5});
    CHECK(image.origin_mm == std::array<double, 3>{0, 1, 2});
    CHECK(image.values[23] == 23);

    const auto refused = [&](const std::string& bytes, const char* with) {
        write_file(file, bytes);
        CHECK_THROWS_WITH(nifti::read(file), contains(with));
    };
    const auto changed = [](const auto& change) {
        nifti::Header h = header();
        change(h);
        return bytes_of(h, 24);
    };
    refused("", "found a shorter file");
    refused(bytes_of(header(), 23), "expected 448 bytes, found 444");
    refused(bytes_of(header(), 25), "expected 448 bytes, found 452");
    refused(std::string(500, 'x'), "a NIfTI-1 file");
    refused(changed([](auto& h) { h.datatype = 64; }), "type 64");
    refused(changed([](auto& h) { h.dim[0] = 4; }), "3 dimensions");
    refused(changed([](auto& h) { h.dim[2] = -3; }), "at least one voxel");
    refused(changed([](auto& h) { h.scl_slope = 2; }), "without scale");
    refused(changed([](auto& h) { h.sform_code = 0; }), "sform");
    refused(changed([](auto& h) { h.srow[0][1] = 1; }), "axes along");
    refused(changed([](auto& h) { h.srow[1][1] = -1; }), "above 0 mm");
    refused(changed([](auto& h) { h.srow[1][3] = std::numeric_limits<float>::quiet_NaN(); }), "above 0 mm");
    CHECK_THROWS_AS(nifti::read(dir / "none.nii"), config::IoError);
}

}  // namespace petacq::test

#include "tools/petlm/image/nifti.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "config/error.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/records/status.hpp"

namespace petacq::image {
namespace {

static_assert(std::endian::native == std::endian::little);

// NOLINTBEGIN(modernize-avoid-c-arrays): the layout of the file
struct Header {
    std::int32_t sizeof_hdr = 348;
    char unused_1[34] = {};
    char regular = 'r';
    char dim_info = 0;
    std::int16_t dim[8] = {3, 0, 0, 0, 1, 1, 1, 1};
    float intent_p[3] = {};
    std::int16_t intent_code = 0;
    std::int16_t datatype = 16;  // 32-bit float
    std::int16_t bitpix = 32;
    std::int16_t slice_start = 0;
    float pixdim[8] = {1, 0, 0, 0, 0, 0, 0, 0};
    float vox_offset = 352;
    float scl_slope = 1;
    float scl_inter = 0;
    std::int16_t slice_end = 0;
    char slice_code = 0;
    char xyzt_units = 2;  // mm
    float cal_max = 0;
    float cal_min = 0;
    float slice_duration = 0;
    float toffset = 0;
    std::int32_t glmax = 0;
    std::int32_t glmin = 0;
    char descrip[80] = {};
    char aux_file[24] = {};
    std::int16_t qform_code = 1;  // scanner
    std::int16_t sform_code = 1;
    float quatern[3] = {};  // b, c, d
    float qoffset[3] = {};
    float srow[3][4] = {};
    char intent_name[16] = {};
    char magic[4] = {'n', '+', '1', 0};
    char extension[4] = {};  // none
};
// NOLINTEND(modernize-avoid-c-arrays)
static_assert(sizeof(Header) == 352);
static_assert(offsetof(Header, dim) == 40 && offsetof(Header, pixdim) == 76);
static_assert(offsetof(Header, descrip) == 148 && offsetof(Header, qform_code) == 252);
static_assert(offsetof(Header, srow) == 280 && offsetof(Header, magic) == 344);

constexpr std::size_t header_bytes = 348;

template <class Value>
void convert(const char* data, std::vector<float>& to, double slope, double intercept) {
    for (float& value : to) {
        Value stored;
        std::memcpy(&stored, data, sizeof stored);
        data += sizeof stored;
        value = static_cast<float>(static_cast<double>(stored) * slope + intercept);
    }
}

/// Where the middle of the first voxel is, and that the axes are not turned.
void place(Volume& volume, const Header& header, const std::string& name) {
    const auto refuse = [&] {
        throw petlm::BadInput(
            name + ": its axes are turned or mirrored; expected an image in the axes of the scanner");
    };
    for (std::size_t axis = 0; axis < 3; ++axis) {
        volume.voxel_mm[axis] = header.pixdim[axis + 1];
        if (!(volume.voxel_mm[axis] > 0)) {
            throw petlm::BadInput(name + ": expected voxels larger than 0 mm");
        }
        volume.origin_mm[axis] = -0.5 * static_cast<double>(volume.n[axis] - 1) * volume.voxel_mm[axis];
    }
    if (header.sform_code > 0) {
        for (std::size_t row = 0; row < 3; ++row) {
            for (std::size_t column = 0; column < 3; ++column) {
                const double expected = row == column ? volume.voxel_mm[row] : 0;
                if (!(std::abs(header.srow[row][column] - expected) < 1e-3 * volume.voxel_mm[row])) refuse();
            }
            volume.origin_mm[row] = header.srow[row][3];
        }
    } else if (header.qform_code > 0) {
        for (std::size_t axis = 0; axis < 3; ++axis) {
            if (!(std::abs(header.quatern[axis]) < 1e-3F)) refuse();
            volume.origin_mm[axis] = header.qoffset[axis];
        }
        if (header.pixdim[0] < 0) refuse();
    }
    for (const double at : volume.origin_mm) {
        if (!std::isfinite(at)) throw petlm::BadInput(name + ": its position is not a number");
    }
}

}  // namespace

Volume read_nifti(const std::filesystem::path& file) {
    const std::string name = file.string();
    std::ifstream in(file, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(in), {});
    if (!in || std::filesystem::is_directory(file)) throw config::IoError(name + ": cannot be read");
    Header header;
    if (bytes.size() < sizeof header) throw petlm::BadInput(name + ": too short for a NIfTI-1 image");
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.sizeof_hdr != header_bytes || std::memcmp(header.magic, "n+1", 4) != 0) {
        throw petlm::BadInput(name +
                              ": expected a NIfTI-1 image in one file (.nii), little-endian, not compressed");
    }
    Volume volume;
    std::size_t voxels = 1;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const int count = header.dim[axis + 1];
        if (header.dim[0] < 3 || count < 1) throw petlm::BadInput(name + ": expected three dimensions");
        volume.n[axis] = static_cast<std::size_t>(count);
        voxels *= volume.n[axis];
    }
    for (int more = 4; more <= std::min<int>(header.dim[0], 7); ++more) {
        if (header.dim[more] > 1) throw petlm::BadInput(name + ": expected one volume, found several");
    }
    place(volume, header, name);
    const double slope = header.scl_slope == 0 || !std::isfinite(header.scl_slope) ? 1 : header.scl_slope;
    const double intercept = std::isfinite(header.scl_inter) ? header.scl_inter : 0;
    const auto read = [&](auto kind) {
        using Value = decltype(kind);
        const double offset = header.vox_offset;
        if (!(offset >= header_bytes &&
              offset + static_cast<double>(voxels * sizeof(Value)) <= static_cast<double>(bytes.size()))) {
            throw petlm::BadInput(name + ": truncated: expected " + std::to_string(voxels) + " voxels of " +
                                  std::to_string(sizeof(Value)) + " bytes");
        }
        volume.values.resize(voxels);
        convert<Value>(bytes.data() + static_cast<std::size_t>(offset), volume.values, slope, intercept);
    };
    constexpr int int16 = 4;
    constexpr int int32 = 8;
    constexpr int float32 = 16;
    constexpr int float64 = 64;
    switch (header.datatype) {
        case int16:
            read(std::int16_t{});
            break;
        case int32:
            read(std::int32_t{});
            break;
        case float32:
            read(float{});
            break;
        case float64:
            read(double{});
            break;
        default:
            throw petlm::BadInput(name + ": data type " + std::to_string(header.datatype) +
                                  "; expected 16- or 32-bit integers, or floats");
    }
    if (!std::all_of(volume.values.begin(), volume.values.end(), [](float v) { return std::isfinite(v); }))
        throw petlm::BadInput(name + ": a voxel is not a number");
    return volume;
}

void write_nifti(const std::filesystem::path& file, const Grid& grid, std::span<const float> image,
                 const std::string& description) {
    Header header;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        header.dim[axis + 1] = static_cast<std::int16_t>(grid.n[axis]);
        header.pixdim[axis + 1] = static_cast<float>(grid.voxel_mm);
        header.qoffset[axis] = static_cast<float>(grid.centre(axis, 0));
        header.srow[axis][axis] = static_cast<float>(grid.voxel_mm);
        header.srow[axis][3] = header.qoffset[axis];
    }
    description.copy(header.descrip, sizeof header.descrip - 1);
    petlm::OutputFile out(file);
    out.put(header);
    out.text({reinterpret_cast<const char*>(image.data()), image.size_bytes()});
    out.close();
}

}  // namespace petacq::image

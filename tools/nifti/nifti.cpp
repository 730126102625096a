#include "tools/nifti/nifti.hpp"

#include <cmath>
#include <cstring>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string_view>

#include "config/base/error.hpp"
#include "tools/nifti/header.hpp"

namespace petacq::nifti {
namespace {

/// The file while it is read: its name stands in front of each error.
class NiftiInput {
  public:
    explicit NiftiInput(const std::filesystem::path& file)
        : name_(file.string()), in_(file, std::ios::binary) {
        if (!in_ || std::filesystem::is_directory(file)) throw config::IoError(name_ + ": cannot be read");
        in_.seekg(0, std::ios::end);
        bytes_ = static_cast<std::uint64_t>(in_.tellg());
    }
    [[noreturn]] void refuse(const std::string& what) const {
        throw config::Error(name_ + ": expected a NIfTI-1 volume (.nii): " + what);
    }
    void read(std::uint64_t offset, std::span<char> to) {
        if (offset > bytes_ || to.size() > bytes_ - offset) {
            refuse("at least " + std::to_string(offset + to.size()) + " bytes, found " +
                   std::to_string(bytes_));
        }
        in_.seekg(static_cast<std::streamoff>(offset));
        in_.read(to.data(), static_cast<std::streamsize>(to.size()));
        if (!in_) throw config::IoError(name_ + ": cannot be read");
    }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  private:
    std::string name_;
    std::ifstream in_;
    std::uint64_t bytes_ = 0;
};

Header read_header(NiftiInput& file) {
    Header header;
    file.read(0, {reinterpret_cast<char*>(&header), sizeof header});
    if (std::memcmp(&header, "\x1f\x8b", 2) == 0) file.refuse("it is compressed; gunzip makes a .nii of it");
    if (header.sizeof_hdr == 0x5C010000) file.refuse("its numbers are big-endian");
    if (header.sizeof_hdr != 348 || std::memcmp(header.magic, "n+1", 4) != 0)
        file.refuse("its first 348 bytes are not such a header");
    bool one_volume = header.dim[0] >= 3 && header.dim[0] <= 7;
    for (int axis = 1; axis <= 7 && one_volume; ++axis)
        one_volume = header.dim[axis] >= 1 && (axis <= 3 || axis > header.dim[0] || header.dim[axis] == 1);
    if (!one_volume) file.refuse("three dimensions of at least one voxel, and one volume");
    // 0: unknown. Other codes are metres, micrometres.
    if ((header.xyzt_units & 7) != 2 && (header.xyzt_units & 7) != 0) file.refuse("lengths in mm");
    return header;
}

/// NIfTI's quaternion to the rotation, as nifti1.h defines it.
void place_by_qform(const Header& h, Volume& volume) {
    const double b = h.quatern[0];
    const double c = h.quatern[1];
    const double d = h.quatern[2];
    const double a = std::sqrt(std::max(0.0, 1 - b * b - c * c - d * d));
    const double flip = h.pixdim[0] < 0 ? -1 : 1;
    const std::array<Vector3, 3> columns{{
        {a * a + b * b - c * c - d * d, 2 * (b * c + a * d), 2 * (b * d - a * c)},
        {2 * (b * c - a * d), a * a + c * c - b * b - d * d, 2 * (c * d + a * b)},
        {flip * 2 * (b * d + a * c), flip * 2 * (c * d - a * b), flip * (a * a + d * d - b * b - c * c)},
    }};
    for (std::size_t i = 0; i < 3; ++i) {
        volume.first[i] = h.qoffset[i];
        for (std::size_t axis = 0; axis < 3; ++axis)
            volume.step[i][axis] = columns[i][axis] * h.pixdim[i + 1];
    }
}

template <class Value>
void convert(const std::vector<char>& bytes, std::vector<float>& values, double slope, double inter) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        Value value;
        std::memcpy(&value, bytes.data() + i * sizeof(Value), sizeof(Value));
        values[i] = static_cast<float>(slope * static_cast<double>(value) + inter);
    }
}

struct Type {
    std::int16_t code;
    std::size_t bytes;
    void (*convert)(const std::vector<char>&, std::vector<float>&, double, double);
};
template <class Value>
constexpr Type type(std::int16_t code) {
    return {code, sizeof(Value), convert<Value>};
}
constexpr std::array types{type<std::uint8_t>(2),    type<std::int16_t>(4),    type<std::int32_t>(8),
                           type<float>(16),          type<double>(64),         type<std::int8_t>(256),
                           type<std::uint16_t>(512), type<std::uint32_t>(768), type<std::int64_t>(1024),
                           type<std::uint64_t>(1280)};

const Type& type_of(const NiftiInput& file, std::int16_t code) {
    for (const Type& type : types)
        if (type.code == code) return type;
    file.refuse("whole or floating-point numbers, found data type " + std::to_string(code));
}

double determinant(const std::array<Vector3, 3>& m) {
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
           m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

}  // namespace

double Volume::voxel_mm3() const {
    return std::abs(determinant(step));
}

Volume load(const std::filesystem::path& path) {
    NiftiInput file(path);
    const Header header = read_header(file);
    Volume volume;
    for (std::size_t axis = 0; axis < 3; ++axis)
        volume.n[axis] = static_cast<std::uint32_t>(header.dim[axis + 1]);
    if (header.sform_code > 0) {
        for (std::size_t axis = 0; axis < 3; ++axis) {
            volume.first[axis] = header.srow[axis][3];
            for (std::size_t i = 0; i < 3; ++i)
                volume.step[i][axis] = header.srow[axis][i];
        }
    } else if (header.qform_code > 0) {
        place_by_qform(header, volume);
    } else {
        file.refuse("an sform or a qform, which say where its voxels are");
    }
    const double size = volume.voxel_mm3();
    if (!(size > 0 && std::isfinite(size) &&
          std::isfinite(volume.first[0] + volume.first[1] + volume.first[2])))
        file.refuse("voxels of a size above 0 at a finite place");

    const Type& type = type_of(file, header.datatype);
    if (!(header.vox_offset >= 352 && header.vox_offset < 1e9F))
        file.refuse("values from byte 352 on or later");
    const auto offset = static_cast<std::uint64_t>(header.vox_offset);
    if (volume.voxels() > file.bytes() / type.bytes) {
        file.refuse(std::to_string(volume.voxels()) + " values of " + std::to_string(type.bytes) +
                    " bytes, found a file of " + std::to_string(file.bytes()));
    }
    std::vector<char> bytes(volume.voxels() * type.bytes);
    file.read(offset, bytes);
    volume.values.resize(volume.voxels());
    const bool scaled = header.scl_slope != 0;  // 0: the header does not scale
    type.convert(bytes, volume.values, scaled ? header.scl_slope : 1, scaled ? header.scl_inter : 0);
    for (const float value : volume.values)
        if (!std::isfinite(value)) file.refuse("finite values");
    return volume;
}

std::string header(const Volume& volume, const std::string& description,
                   const std::optional<Series>& series) {
    Header header;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const Vector3& step = volume.step[axis];
        for (std::size_t other = 0; other < 3; ++other) {
            if (other == axis ? step[other] > 0 : step[other] == 0) continue;
            throw std::invalid_argument("a NIfTI file is written with the axes of the scanner only");
        }
        if (volume.n[axis] > INT16_MAX)
            throw std::invalid_argument("a NIfTI file has at most 32767 voxels along an axis");
        header.dim[axis + 1] = static_cast<std::int16_t>(volume.n[axis]);
        header.pixdim[axis + 1] = static_cast<float>(step[axis]);
        header.qoffset[axis] = static_cast<float>(volume.first[axis]);
        header.srow[axis][axis] = static_cast<float>(step[axis]);
        header.srow[axis][3] = header.qoffset[axis];
    }
    if (series) {
        if (series->volumes > INT16_MAX)
            throw std::invalid_argument("a NIfTI file has at most 32767 volumes");
        constexpr char mm_and_s = 2 | 8;
        header.dim[0] = 4;
        header.dim[4] = static_cast<std::int16_t>(series->volumes);
        header.pixdim[4] = static_cast<float>(series->step_s);
        header.toffset = static_cast<float>(series->start_s);
        header.xyzt_units = mm_and_s;
    }
    description.copy(header.descrip, sizeof header.descrip - 1);
    return {reinterpret_cast<const char*>(&header), sizeof header};
}

}  // namespace petacq::nifti

// Calibration files: HDF5 in, HDF5 out.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <system_error>

#include "config/calibration.hpp"
#include "config/error.hpp"
#include "config/file.hpp"
#include "config/hdf5_handle.hpp"

namespace petacq::config {

namespace {

using Shape = std::vector<hsize_t>;

/// The required form of a data set. An extent of 0 is free: the energy bins.
struct Expected {
    const char* name;
    const char* type;
    hid_t memory_type;
    Shape shape;
};

std::string shape_text(const Shape& shape) {
    std::string text;
    for (const hsize_t n : shape)
        text.append("[").append(n == 0 ? "bins" : std::to_string(n)).append("]");
    return text.empty() ? "no dimensions" : text;
}

std::string type_text(hid_t type) {
    const std::string bits = std::to_string(H5Tget_size(type) * 8);
    switch (H5Tget_class(type)) {
        case H5T_INTEGER:
            return std::string(H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "i") + bits;
        case H5T_FLOAT:
            return std::string("f") + bits;
        case H5T_STRING:
            return "a string type";
        case H5T_COMPOUND:
            return "a compound type";
        default:
            return "a type of class " + std::to_string(H5Tget_class(type));
    }
}

[[noreturn]] void refuse(const Expected& expected, const std::string& found) {
    throw Error(std::string("data set \"") + expected.name + "\": expected " + expected.type +
                shape_text(expected.shape) + ", found " + found);
}

bool link_exists(hid_t file, const Expected& expected) {
    const htri_t found = H5Lexists(file, expected.name, H5P_DEFAULT);
    // Damage must not look like the absence of an optional data set.
    if (found < 0) refuse(expected, "a damaged file: " + hdf5_error());
    return found > 0;
}

/// All data must be in the file whose SHA-256 is recorded: external storage is refused.
void check_inside(hid_t file, const Expected& expected) {
    H5L_info_t link{};
    if (H5Lget_info(file, expected.name, &link, H5P_DEFAULT) < 0) refuse(expected, hdf5_error());
    if (link.type != H5L_TYPE_HARD) refuse(expected, "a link to something else");
}

Hdf5DataSet open_checked(hid_t file, const Expected& expected) {
    if (!link_exists(file, expected)) refuse(expected, "no such data set");
    check_inside(file, expected);
    Hdf5DataSet data(H5Dopen2(file, expected.name, H5P_DEFAULT));
    if (!data) refuse(expected, "something that is not a readable data set: " + hdf5_error());
    const Hdf5List creation(H5Dget_create_plist(data.id()));
    if (!creation || H5Pget_layout(creation.id()) == H5D_VIRTUAL || H5Pget_external_count(creation.id()) != 0)
        refuse(expected, "data outside the file");
    const Hdf5Type type(H5Dget_type(data.id()));
    if (!type || type_text(type.id()) != expected.type)
        refuse(expected, type ? type_text(type.id()) : hdf5_error());
    return data;
}

Shape shape_of(const Hdf5DataSet& data, const Expected& expected) {
    const Hdf5Space space(H5Dget_space(data.id()));
    const int rank = space ? H5Sget_simple_extent_ndims(space.id()) : -1;
    if (rank < 0) refuse(expected, "an unreadable shape: " + hdf5_error());
    Shape shape(static_cast<std::size_t>(rank));
    if (H5Sget_simple_extent_dims(space.id(), shape.data(), nullptr) < 0)
        refuse(expected, "an unreadable shape: " + hdf5_error());
    bool same = shape.size() == expected.shape.size();
    for (std::size_t i = 0; same && i < shape.size(); ++i)
        same = shape[i] == expected.shape[i] || expected.shape[i] == 0;
    if (!same) refuse(expected, std::string(expected.type) + shape_text(shape));
    if (expected.shape.back() == 0 && (shape.back() < 1 || shape.back() > max_bins)) {
        refuse(expected, std::string(expected.type) + shape_text(shape) + " (1 to " +
                             std::to_string(max_bins) + " bins)");
    }
    return shape;
}

/// Reads a whole data set. Returns its last extent.
template <class T>
std::uint32_t read(hid_t file, const Expected& expected, std::vector<T>& out) {
    const Hdf5DataSet data = open_checked(file, expected);
    const Shape shape = shape_of(data, expected);
    std::size_t count = 1;
    for (const hsize_t n : shape)
        count *= n;
    out.resize(count);
    if (H5Dread(data.id(), expected.memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()) < 0)
        refuse(expected, "unreadable data: " + hdf5_error());
    return static_cast<std::uint32_t>(shape.back());
}

struct Layout {
    Expected position_table;
    Expected energy_factor;
    Expected time_offset;
};

Layout layout_of(const Geometry& g) {
    const hsize_t positions = hsize_t{g.position_size} * g.position_size;
    return {{"position_table", "u8", H5T_NATIVE_UINT8, {g.bdm_count, g.du_count, positions}},
            {"energy_factor", "f32", H5T_NATIVE_FLOAT, {g.bdm_count, g.du_count, g.crystals_per_du(), 0}},
            {"time_offset", "i32", H5T_NATIVE_INT32, {g.crystal_count()}}};
}

Calibration load(const std::filesystem::path& file, const Geometry& geometry) {
    if (H5Fis_hdf5(file.c_str()) <= 0) throw Error("not an HDF5 file");
    const Hdf5File h5(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    if (!h5) throw Error("cannot be opened as HDF5: " + hdf5_error());
    const Layout layout = layout_of(geometry);
    Calibration c;
    read(h5.id(), layout.position_table, c.position_table);
    c.bins = read(h5.id(), layout.energy_factor, c.energy_factor);
    if (link_exists(h5.id(), layout.time_offset)) read(h5.id(), layout.time_offset, c.time_offset);
    check_calibration(geometry, c);
    return c;
}

void require(bool good) {
    if (!good) throw IoError("cannot be written: " + hdf5_error());
}

void write_attribute(hid_t object, const char* name, hid_t file_type, hid_t memory_type, const void* value) {
    const Hdf5Space space(H5Screate(H5S_SCALAR));
    const Hdf5Attribute attribute(H5Acreate2(object, name, file_type, space.id(), H5P_DEFAULT, H5P_DEFAULT));
    require(attribute && H5Awrite(attribute.id(), memory_type, value) >= 0);
}

void write_units(hid_t object, const std::string& units) {
    const Hdf5Type type(H5Tcopy(H5T_C_S1));
    require(type && H5Tset_size(type.id(), units.size()) >= 0);
    write_attribute(object, "units", type.id(), type.id(), units.data());
}

/// Compressed, one chunk for each detector unit, with a checksum that is verified on reading.
Hdf5DataSet write(hid_t file, const Expected& expected, const Shape& shape, hid_t file_type,
                  const void* values) {
    Shape chunk = shape;
    for (std::size_t i = 0; i < 2 && chunk.size() > 2; ++i)
        chunk[i] = 1;
    const Hdf5List creation(H5Pcreate(H5P_DATASET_CREATE));
    require(creation && H5Pset_chunk(creation.id(), static_cast<int>(chunk.size()), chunk.data()) >= 0 &&
            H5Pset_shuffle(creation.id()) >= 0 && H5Pset_deflate(creation.id(), 4) >= 0 &&
            H5Pset_fletcher32(creation.id()) >= 0);
    const Hdf5Space space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
    Hdf5DataSet data(
        H5Dcreate2(file, expected.name, file_type, space.id(), H5P_DEFAULT, creation.id(), H5P_DEFAULT));
    require(data && H5Dwrite(data.id(), expected.memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    return data;
}

void write_file(const std::filesystem::path& file, const Geometry& geometry, const Calibration& c) {
    const Hdf5List access(H5Pcreate(H5P_FILE_ACCESS));
    // The newer layout has checksums over its own structure.
    require(access && H5Pset_libver_bounds(access.id(), H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0);
    Hdf5File h5(H5Fcreate(file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id()));
    require(static_cast<bool>(h5));
    const Layout layout = layout_of(geometry);

    Hdf5DataSet positions = write(h5.id(), layout.position_table, layout.position_table.shape, H5T_STD_U8LE,
                                  c.position_table.data());
    write_units(positions.id(), "crystal of the block; crystals.y * crystals.z or more: outside");

    Shape factor_shape = layout.energy_factor.shape;
    factor_shape.back() = c.bins;
    Hdf5DataSet factors =
        write(h5.id(), layout.energy_factor, factor_shape, H5T_IEEE_F32LE, c.energy_factor.data());
    write_units(factors.id(), "keV per ADC count");
    write_attribute(factors.id(), "adc_per_bin", H5T_STD_U32LE, H5T_NATIVE_UINT32, &adc_per_bin);

    Hdf5DataSet offsets;
    if (!c.time_offset.empty()) {
        offsets =
            write(h5.id(), layout.time_offset, layout.time_offset.shape, H5T_STD_I32LE, c.time_offset.data());
        write_units(offsets.id(), "ticks, added to the raw time");
    }
    // The flush reports a full disk at the latest.
    require(positions.close() && factors.close() && offsets.close() && h5.close());
}

/// Returns when the file, or the names in the directory, are on the disk. (daemon/host/file.hpp does this for
/// files that HDF5 does not write; this folder lies below it.)
void sync(const std::filesystem::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    // Some file systems cannot sync a directory.
    const bool synced = descriptor >= 0 && (::fsync(descriptor) == 0 || errno == EINVAL);
    const std::error_code why(errno, std::generic_category());
    if (descriptor >= 0) ::close(descriptor);
    if (!synced) throw IoError("cannot be synced to the disk: " + why.message());
}

}  // namespace

Calibration load_calibration(const std::filesystem::path& file, const Geometry& geometry) {
    open_for_reading(file);  // its message is clearer than HDF5's
    const Hdf5Silence silence;
    try {
        Calibration c = load(file, geometry);
        c.sha256 = sha256_of_file(file);
        return c;
    } catch (const IoError&) {
        throw;
    } catch (const Error& e) {
        throw Error(file.string() + ": " + e.what());
    } catch (const std::bad_alloc&) {
        throw Error(file.string() + ": its tables do not fit into memory");
    }
}

void save_calibration(const std::filesystem::path& file, const Geometry& geometry,
                      const Calibration& calibration) {
    const Hdf5Silence silence;
    std::filesystem::path partial = file;
    partial += ".partial-" + std::to_string(getpid());
    std::error_code failed;
    try {
        check_calibration(geometry, calibration);
        write_file(partial, geometry, calibration);
        sync(partial);
        std::filesystem::rename(partial, file, failed);
        if (failed) throw IoError("cannot be written: " + failed.message());
        sync(file.has_parent_path() ? file.parent_path() : ".");
    } catch (const Error& e) {
        std::error_code ignored;
        std::filesystem::remove(partial, ignored);
        if (dynamic_cast<const IoError*>(&e) != nullptr) throw IoError(file.string() + ": " + e.what());
        throw Error(file.string() + ": " + e.what());
    }
}

}  // namespace petacq::config

#include "config/hdf5/table.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <new>
#include <system_error>

#include "config/base/error.hpp"
#include "config/base/file.hpp"

namespace petacq::config {

namespace {

std::string shape_text(const Hdf5Shape& shape) {
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

[[noreturn]] void refuse(const Hdf5Table& table, const std::string& found) {
    throw Error(std::string("data set \"") + table.name + "\": expected " + table.type +
                shape_text(table.shape) + ", found " + found);
}

void check_inside(hid_t file, const Hdf5Table& table) {
    H5L_info_t link{};
    if (H5Lget_info(file, table.name, &link, H5P_DEFAULT) < 0) refuse(table, hdf5_error());
    if (link.type != H5L_TYPE_HARD) refuse(table, "a link to something else");
}

Hdf5Shape shape_of(const Hdf5DataSet& data, const Hdf5Table& table) {
    const Hdf5Space space(H5Dget_space(data.id()));
    const int rank = space ? H5Sget_simple_extent_ndims(space.id()) : -1;
    if (rank < 0) refuse(table, "an unreadable shape: " + hdf5_error());
    Hdf5Shape shape(static_cast<std::size_t>(rank));
    if (H5Sget_simple_extent_dims(space.id(), shape.data(), nullptr) < 0)
        refuse(table, "an unreadable shape: " + hdf5_error());
    bool same = shape.size() == table.shape.size();
    for (std::size_t i = 0; same && i < shape.size(); ++i)
        same = shape[i] == table.shape[i] || table.shape[i] == 0;
    if (!same) refuse(table, std::string(table.type) + shape_text(shape));
    if (table.shape.back() == 0 && (shape.back() < 1 || shape.back() > table.most)) {
        refuse(table, std::string(table.type) + shape_text(shape) + " (1 to " + std::to_string(table.most) +
                          " bins)");
    }
    return shape;
}

/// HDF5 takes memory for whole chunks, whatever their data set holds.
void check_chunk(const Hdf5List& creation, const Hdf5Table& table, const Hdf5Shape& shape) {
    Hdf5Shape chunk(shape.size());
    const int rank = static_cast<int>(shape.size());
    bool fits = H5Pget_chunk(creation.id(), rank, chunk.data()) == rank;
    for (std::size_t i = 0; fits && i < shape.size(); ++i)
        fits = chunk[i] <= shape[i];
    if (!fits) refuse(table, "chunks " + shape_text(chunk) + " larger than it");
}

/// Returns when the file, or the names in the directory, are on the disk. (daemon/system/file.hpp does this
/// for files that HDF5 does not write; this folder lies below it.)
void sync(const std::filesystem::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    // Some file systems cannot sync a directory.
    const bool synced = descriptor >= 0 && (::fsync(descriptor) == 0 || errno == EINVAL);
    const std::error_code why(errno, std::generic_category());
    if (descriptor >= 0) ::close(descriptor);
    if (!synced) throw IoError("cannot be synced to the disk: " + why.message());
}

}  // namespace

bool has_table(hid_t file, const Hdf5Table& table) {
    const htri_t found = H5Lexists(file, table.name, H5P_DEFAULT);
    // Damage must not look like the absence of an optional data set.
    if (found < 0) refuse(table, "a damaged file: " + hdf5_error());
    return found > 0;
}

Hdf5DataSet open_table(hid_t file, const Hdf5Table& table, Hdf5Shape& shape) {
    if (!has_table(file, table)) refuse(table, "no such data set");
    check_inside(file, table);
    Hdf5DataSet data(H5Dopen2(file, table.name, H5P_DEFAULT));
    if (!data) refuse(table, "something that is not a readable data set: " + hdf5_error());
    const Hdf5List creation(H5Dget_create_plist(data.id()));
    if (!creation || H5Pget_layout(creation.id()) == H5D_VIRTUAL || H5Pget_external_count(creation.id()) != 0)
        refuse(table, "data outside the file");
    const Hdf5Type type(H5Dget_type(data.id()));
    if (!type || type_text(type.id()) != table.type)
        refuse(table, type ? type_text(type.id()) : hdf5_error());
    shape = shape_of(data, table);
    if (H5Pget_layout(creation.id()) == H5D_CHUNKED) check_chunk(creation, table, shape);
    return data;
}

void read_values(const Hdf5DataSet& data, const Hdf5Table& table, void* values) {
    if (H5Dread(data.id(), table.memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        refuse(table, "unreadable data: " + hdf5_error());
}

double read_number(hid_t file, const char* name) {
    const auto wrong = [&](const std::string& found) {
        return Error(std::string("attribute \"") + name + "\": expected a number, found " + found);
    };
    if (H5Aexists(file, name) <= 0) throw wrong("no such attribute");
    const Hdf5Attribute attribute(H5Aopen(file, name, H5P_DEFAULT));
    const Hdf5Type type(attribute ? H5Aget_type(attribute.id()) : -1);
    const Hdf5Space space(attribute ? H5Aget_space(attribute.id()) : -1);
    if (!type || !space) throw wrong("something unreadable: " + hdf5_error());
    if (H5Tget_class(type.id()) != H5T_FLOAT && H5Tget_class(type.id()) != H5T_INTEGER)
        throw wrong(type_text(type.id()));
    if (H5Sget_simple_extent_npoints(space.id()) != 1) throw wrong("several values, or none");
    double value = 0;
    if (H5Aread(attribute.id(), H5T_NATIVE_DOUBLE, &value) < 0)
        throw wrong("something unreadable: " + hdf5_error());
    return value;
}

std::map<std::string, std::string> read_texts(hid_t file) {
    std::map<std::string, std::string> texts;
    const auto read = [](hid_t object, const char* name, const H5A_info_t*, void* to) -> herr_t {
        constexpr std::size_t max_bytes = 4096;
        constexpr std::size_t most = 64;
        auto& out = *static_cast<std::map<std::string, std::string>*>(to);
        if (out.size() == most) return 1;
        const Hdf5Attribute attribute(H5Aopen(object, name, H5P_DEFAULT));
        const Hdf5Type type(attribute ? H5Aget_type(attribute.id()) : -1);
        const Hdf5Space space(attribute ? H5Aget_space(attribute.id()) : -1);
        if (!type || !space || H5Tget_class(type.id()) != H5T_STRING) return 0;
        if (H5Tis_variable_str(type.id()) != 0 || H5Sget_simple_extent_npoints(space.id()) != 1) return 0;
        const std::size_t bytes = H5Tget_size(type.id());
        if (bytes == 0 || bytes > max_bytes) return 0;
        std::string text(bytes, ' ');
        if (H5Aread(attribute.id(), type.id(), text.data()) < 0) return 0;
        out[name] = text.substr(0, text.find('\0'));
        return 0;
    };
    H5Aiterate2(file, H5_INDEX_NAME, H5_ITER_INC, nullptr, read, &texts);
    return texts;
}

void require_written(bool good) {
    if (!good) throw IoError("cannot be written: " + hdf5_error());
}

void write_attribute(hid_t object, const char* name, hid_t file_type, hid_t memory_type, const void* value) {
    const Hdf5Space space(H5Screate(H5S_SCALAR));
    const Hdf5Attribute attribute(H5Acreate2(object, name, file_type, space.id(), H5P_DEFAULT, H5P_DEFAULT));
    require_written(attribute && H5Awrite(attribute.id(), memory_type, value) >= 0);
}

void write_text(hid_t object, const char* name, const std::string& text) {
    const Hdf5Type type(H5Tcopy(H5T_C_S1));
    require_written(type && H5Tset_size(type.id(), text.size()) >= 0);
    write_attribute(object, name, type.id(), type.id(), text.data());
}

void write_texts(hid_t object, const std::map<std::string, std::string>& texts) {
    for (const auto& [name, text] : texts)
        if (!text.empty()) write_text(object, name.c_str(), text);
}

Hdf5DataSet write_table(hid_t file, const Hdf5Table& table, hid_t file_type, const void* values,
                        const std::string& units) {
    Hdf5Shape chunk = table.shape;
    for (std::size_t i = 0; i < 2 && chunk.size() > 2; ++i)
        chunk[i] = 1;
    const Hdf5List creation(H5Pcreate(H5P_DATASET_CREATE));
    require_written(creation &&
                    H5Pset_chunk(creation.id(), static_cast<int>(chunk.size()), chunk.data()) >= 0 &&
                    H5Pset_shuffle(creation.id()) >= 0 && H5Pset_deflate(creation.id(), 4) >= 0 &&
                    H5Pset_fletcher32(creation.id()) >= 0);
    const Hdf5Space space(
        H5Screate_simple(static_cast<int>(table.shape.size()), table.shape.data(), nullptr));
    Hdf5DataSet data(
        H5Dcreate2(file, table.name, file_type, space.id(), H5P_DEFAULT, creation.id(), H5P_DEFAULT));
    require_written(data &&
                    H5Dwrite(data.id(), table.memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    write_text(data.id(), "units", units);
    return data;
}

namespace {
std::mutex library;  // HDF5 is not thread-safe
}

void read_hdf5_file(const std::filesystem::path& file, const std::function<void(hid_t)>& read) {
    open_for_reading(file);  // its message is clearer than HDF5's
    const std::lock_guard lock(library);
    const Hdf5Silence silence;
    try {
        if (H5Fis_hdf5(file.c_str()) <= 0) throw Error("not an HDF5 file");
        // Network file systems may have no locks, and reading needs none: files are replaced as a whole.
        const Hdf5List access(H5Pcreate(H5P_FILE_ACCESS));
        if (!access || H5Pset_file_locking(access.id(), false, true) < 0) throw Error(hdf5_error());
        Hdf5File h5(H5Fopen(file.c_str(), H5F_ACC_RDONLY, access.id()));
        // HDF5 wants the locks of a file that this process has open already.
        if (!h5) h5 = Hdf5File(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
        if (!h5) throw Error("cannot be opened as HDF5: " + hdf5_error());
        read(h5.id());
    } catch (const IoError&) {
        throw;
    } catch (const Error& e) {
        throw Error(file.string() + ": " + e.what());
    } catch (const std::bad_alloc&) {
        throw Error(file.string() + ": its tables do not fit into memory");
    }
}

void replace_hdf5_file(const std::filesystem::path& file, const std::function<void(hid_t)>& write) {
    const std::lock_guard lock(library);
    const Hdf5Silence silence;
    const std::filesystem::path partial = temporary_name(file);
    std::error_code failed;
    try {
        const Hdf5List access(H5Pcreate(H5P_FILE_ACCESS));
        // The newer layout has checksums over its own structure.
        require_written(access && H5Pset_libver_bounds(access.id(), H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0);
        Hdf5File h5(H5Fcreate(partial.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, access.id()));
        require_written(static_cast<bool>(h5));
        write(h5.id());
        require_written(h5.close());  // the flush reports a full disk at the latest
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

// Tables in HDF5 files: read only in the required form, and written so that damage is found.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "config/hdf5/handle.hpp"

namespace petacq::config {

using Hdf5Shape = std::vector<hsize_t>;

/// The required form of a data set. An extent of 0 is free, up to `most`: the energy bins.
struct Hdf5Table {
    const char* name;
    const char* type;  ///< of its values in the file: "u8", "f32", "i32", ...
    hid_t memory_type;
    Hdf5Shape shape;
    hsize_t most = 0;
};

/// Whether the file has such a data set. The functions on tables throw Error: what they expected, what they
/// found. All data must be in the file whose SHA-256 is recorded: links and external storage are refused.
bool has_table(hid_t file, const Hdf5Table& table);
/// Opens the data set and checks its type; `shape` receives its shape, which fits.
Hdf5DataSet open_table(hid_t file, const Hdf5Table& table, Hdf5Shape& shape);
void read_values(const Hdf5DataSet& data, const Hdf5Table& table, void* values);
/// Reads the whole table. Returns its last extent.
template <class T>
std::uint32_t read_table(hid_t file, const Hdf5Table& table, std::vector<T>& out) {
    Hdf5Shape shape;
    const Hdf5DataSet data = open_table(file, table, shape);
    std::size_t count = 1;
    for (const hsize_t n : shape)
        count *= n;
    out.resize(count);
    read_values(data, table, out.data());
    return static_cast<std::uint32_t>(shape.back());
}
/// A number in an attribute of the file. Throws Error.
double read_number(hid_t file, const char* name);

/// The attributes of the file that hold text of a fixed length, up to 4 KiB; at most 64 of them. Others, and
/// damaged ones, are left out.
std::map<std::string, std::string> read_texts(hid_t file);

/// Throws IoError with what HDF5 says unless `good`.
void require_written(bool good);
/// Writes a table compressed and with a checksum that is verified on reading; in one chunk for each detector
/// unit if its first two extents are those. Throws IoError, like the next two.
Hdf5DataSet write_table(hid_t file, const Hdf5Table& table, hid_t file_type, const void* values,
                        const std::string& units);
void write_attribute(hid_t object, const char* name, hid_t file_type, hid_t memory_type, const void* value);
void write_text(hid_t object, const char* name, const std::string& text);
/// Empty texts are left out.
void write_texts(hid_t object, const std::map<std::string, std::string>& texts);

// The HDF5 library is not thread-safe: only one call of these two functions may run at a time.

/// Opens the file and calls `read`; errors name the file.
void read_hdf5_file(const std::filesystem::path& file, const std::function<void(hid_t)>& read);
/// Replaces the file as a whole: at any time, power cuts included, it has its previous content or all that
/// `write` writes. Throws Error or IoError, naming the file; what was there before is then still there unless
/// only the directory could not be synced.
void replace_hdf5_file(const std::filesystem::path& file, const std::function<void(hid_t)>& write);

}  // namespace petacq::config

// Attributes and texts in HDF5 files.
#pragma once

#include <cstdint>
#include <string>

#include "config/hdf5/handle.hpp"
#include "tools/petlm/records/covered_seconds.hpp"

namespace petacq::petlm {

using Hdf5Group = config::Hdf5Handle<H5Gclose>;

/// Throws std::runtime_error with the message of HDF5 unless `good`.
void require(bool good);

/// Text of variable length, which Python and others read as text.
config::Hdf5Type hdf5_text_type();
void attribute(hid_t object, const char* name, const std::string& text);
template <class Value>
void attribute(hid_t object, const char* name, hid_t file_type, hid_t memory_type, Value value) {
    const config::Hdf5Space space(H5Screate(H5S_SCALAR));
    const config::Hdf5Attribute a(H5Acreate2(object, name, file_type, space.id(), H5P_DEFAULT, H5P_DEFAULT));
    require(a && H5Awrite(a.id(), memory_type, &value) >= 0);
}
/// For text that is too long for an attribute.
void text_data_set(hid_t file, const char* name, const std::string& text);

/// Writes the seconds to the group "seconds": a data set [second] or [second][module or crystal] for each
/// field, and "covered" [second], the share of each that the records cover. Returns their number. Throws
/// BadInput for files that are not complete and runs whose seconds have different fields.
std::uint64_t write_hdf5_seconds(hid_t file, CoveredSeconds& seconds);

}  // namespace petacq::petlm

// Chunks of HDF5 data sets as they are in the file, made without the HDF5 library, which runs in one thread
// at a time: shuffle, deflate and Fletcher-32 of the HDF5 file format specification (version 3.0, IV.A.2.l).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace petacq::petlm {

struct Hdf5Chunk {
    static constexpr std::size_t records = 65536;
    /// Higher levels are several times slower and save a few per cent.
    static constexpr unsigned gzip_level = 1;
};

/// `values`: the values of a whole chunk, `value_bytes` each, little-endian. Thread-safe. Throws
/// std::runtime_error.
std::vector<std::byte> packed_hdf5_chunk(std::span<const std::byte> values, std::size_t value_bytes);

/// One field of up to Hdf5Chunk::records records, followed by zeros.
template <class Record, class Field>
std::vector<std::byte> packed_hdf5_column(const std::vector<Record>& records, Field field) {
    std::vector<decltype(field(records.front()))> values(Hdf5Chunk::records);
    for (std::size_t i = 0; i < records.size(); ++i)
        values[i] = field(records[i]);
    return packed_hdf5_chunk(std::as_bytes(std::span(values)), sizeof values[0]);
}

}  // namespace petacq::petlm

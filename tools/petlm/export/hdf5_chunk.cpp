#include "tools/petlm/export/hdf5_chunk.hpp"

#include <zlib.h>

#include <bit>
#include <cstdint>
#include <stdexcept>

namespace petacq::petlm {

static_assert(std::endian::native == std::endian::little);

namespace {

/// The checksum of HDF5's filter of that name.
std::uint32_t hdf5_fletcher32(std::span<const std::byte> data) {
    // Sums of 16-bit words, high byte first. After 360 words carries must be folded in, or 32 bits overflow.
    constexpr std::size_t max_words = 360;
    std::uint32_t first = 0;
    std::uint32_t second = 0;
    const auto fold = [&] {
        first = (first & 0xFFFFU) + (first >> 16U);
        second = (second & 0xFFFFU) + (second >> 16U);
    };
    std::size_t words = 0;
    for (std::size_t i = 0; i < data.size(); i += 2) {
        const auto high = static_cast<std::uint32_t>(data[i]) << 8U;
        first += high | (i + 1 < data.size() ? static_cast<std::uint32_t>(data[i + 1]) : 0U);
        second += first;
        if (++words % max_words == 0) fold();
    }
    fold();
    fold();
    return second << 16U | first;
}

}  // namespace

std::vector<std::byte> packed_hdf5_chunk(std::span<const std::byte> values, std::size_t value_bytes) {
    // The first bytes of all values, then the second ones, and so on: similar bytes compress better together.
    const std::size_t count = values.size() / value_bytes;
    std::vector<std::byte> shuffled(values.size());
    for (std::size_t byte = 0; byte < value_bytes; ++byte) {
        std::byte* const to = shuffled.data() + byte * count;
        for (std::size_t i = 0; i < count; ++i)
            to[i] = values[i * value_bytes + byte];
    }
    uLongf size = compressBound(shuffled.size());
    std::vector<std::byte> packed(size + sizeof(std::uint32_t));
    if (compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                  reinterpret_cast<const Bytef*>(shuffled.data()), shuffled.size(),
                  Hdf5Chunk::gzip_level) != Z_OK) {
        throw std::runtime_error("zlib: not enough memory to compress");
    }
    packed.resize(size);
    const std::uint32_t checksum = hdf5_fletcher32(packed);
    for (unsigned shift = 0; shift < 32; shift += 8)
        packed.push_back(static_cast<std::byte>(checksum >> shift & 0xFFU));
    return packed;
}

}  // namespace petacq::petlm

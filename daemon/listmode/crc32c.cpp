#include "daemon/listmode/crc32c.hpp"

#include <isa-l/crc.h>

#include <algorithm>

namespace petacq::daemon {
namespace {

// Polynomials over GF(2) modulo that of the CRC, bit-reflected: bit 31 is x^0.
constexpr std::uint32_t polynomial = 0x82F63B78;

std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
    std::uint32_t product = 0;
    for (std::uint32_t bit = 1U << 31U; bit != 0; bit >>= 1U) {
        if ((a & bit) != 0) product ^= b;
        b = (b >> 1U) ^ ((b & 1U) != 0 ? polynomial : 0U);  // times x
    }
    return product;
}

// x^(8 * bytes)
std::uint32_t shift_by(std::uint64_t bytes) {
    std::uint32_t result = 1U << 31U;
    for (std::uint32_t square = 1U << 23U; bytes != 0; bytes >>= 1U, square = multiply(square, square))
        if ((bytes & 1U) != 0) result = multiply(result, square);
    return result;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before) {
    constexpr std::size_t max_piece = 1U << 30U;  // ISA-L takes lengths as int
    std::uint32_t crc = ~before;                  // and leaves both inversions to its caller
    while (!data.empty()) {
        const auto piece = data.first(std::min(data.size(), max_piece));
        // ISA-L only reads, although it takes no const.
        auto* const bytes = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(piece.data()));
        crc = crc32_iscsi(bytes, static_cast<int>(piece.size()), crc);
        data = data.subspan(piece.size());
    }
    return ~crc;
}

std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t bytes_b) {
    return multiply(shift_by(bytes_b), crc_a) ^ crc_b;
}

}  // namespace petacq::daemon

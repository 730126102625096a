#include "daemon/crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace petacq::daemon {
namespace {

constexpr std::uint32_t polynomial = 0x82F63B78;  // bit-reflected

// Polynomials over GF(2) modulo the CRC's, bit-reflected: bit 31 is x^0.
constexpr std::uint32_t times_x(std::uint32_t a) {
    return (a & 1U) != 0 ? (a >> 1U) ^ polynomial : a >> 1U;
}

constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
    std::uint32_t product = 0;
    for (std::uint32_t bit = 1U << 31U; bit != 0; bit >>= 1U) {
        if ((a & bit) != 0) product ^= b;
        b = times_x(b);
    }
    return product;
}

// x^(8 * bytes)
constexpr std::uint32_t shift_by(std::uint64_t bytes) {
    std::uint32_t result = 1U << 31U;
    std::uint32_t square = times_x(1U << 31U);
    for (int i = 0; i < 3; ++i)
        square = multiply(square, square);  // x^8
    for (; bytes != 0; bytes >>= 1U) {
        if ((bytes & 1U) != 0) result = multiply(result, square);
        square = multiply(square, square);
    }
    return result;
}

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
    Tables tables{};
    for (std::uint32_t n = 0; n < 256; ++n) {
        std::uint32_t value = n;
        for (int bit = 0; bit < 8; ++bit)
            value = times_x(value);
        tables[0][n] = value;
    }
    for (std::size_t k = 1; k < 8; ++k) {
        for (std::size_t n = 0; n < 256; ++n) {
            const std::uint32_t last = tables[k - 1][n];
            tables[k][n] = (last >> 8U) ^ tables[0][last & 0xFFU];
        }
    }
    return tables;
}

constexpr Tables tables = make_tables();

#if defined(__x86_64__)
std::uint64_t load64(const std::byte* p) {
    std::uint64_t value = 0;
    std::memcpy(&value, p, sizeof value);
    return value;
}

// The instruction takes one word per cycle but answers after three: three lanes keep it busy.
constexpr std::size_t lane_bytes = 4096;
constexpr std::uint32_t one_lane = shift_by(lane_bytes);
constexpr std::uint32_t two_lanes = shift_by(2 * lane_bytes);

__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::span<const std::byte> data,
                                                               std::uint32_t before) {
    const std::byte* p = data.data();
    std::size_t left = data.size();
    std::uint64_t crc = ~before;
    for (; left >= 3 * lane_bytes; p += 3 * lane_bytes, left -= 3 * lane_bytes) {
        std::uint64_t a = crc;
        std::uint64_t b = 0;
        std::uint64_t c = 0;
        for (std::size_t i = 0; i < lane_bytes; i += 8) {
            a = _mm_crc32_u64(a, load64(p + i));
            b = _mm_crc32_u64(b, load64(p + lane_bytes + i));
            c = _mm_crc32_u64(c, load64(p + 2 * lane_bytes + i));
        }
        crc = multiply(two_lanes, static_cast<std::uint32_t>(a)) ^
              multiply(one_lane, static_cast<std::uint32_t>(b)) ^ static_cast<std::uint32_t>(c);
    }
    for (; left >= 8; p += 8, left -= 8)
        crc = _mm_crc32_u64(crc, load64(p));
    auto rest = static_cast<std::uint32_t>(crc);
    for (; left != 0; ++p, --left)
        rest = _mm_crc32_u8(rest, std::to_integer<std::uint8_t>(*p));
    return ~rest;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(std::span<const std::byte> data, std::uint32_t before) {
    std::uint32_t crc = ~before;
    const std::byte* p = data.data();
    std::size_t left = data.size();
    const auto byte_at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(p[i]); };
    for (; left >= 8; p += 8, left -= 8) {
        const std::uint32_t low =
            crc ^ (byte_at(0) | byte_at(1) << 8U | byte_at(2) << 16U | byte_at(3) << 24U);
        crc = tables[7][low & 0xFFU] ^ tables[6][(low >> 8U) & 0xFFU] ^ tables[5][(low >> 16U) & 0xFFU] ^
              tables[4][low >> 24U] ^ tables[3][byte_at(4)] ^ tables[2][byte_at(5)] ^ tables[1][byte_at(6)] ^
              tables[0][byte_at(7)];
    }
    for (; left != 0; ++p, --left)
        crc = (crc >> 8U) ^ tables[0][(crc ^ byte_at(0)) & 0xFFU];
    return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before) {
#if defined(__x86_64__)
    static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
    if (has_instruction) return by_instruction(data, before);
#endif
    return crc32c_by_table(data, before);
}

std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t bytes_b) {
    return multiply(shift_by(bytes_b), crc_a) ^ crc_b;
}

}  // namespace petacq::daemon

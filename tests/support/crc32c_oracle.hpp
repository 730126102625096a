// CRC-32C straight from its definition, bit by bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace petacq::test {

/// CRC-32C of `data`, or, given the CRC of A as `before`, of A followed by `data`.
inline std::uint32_t crc32c_oracle(std::span<const std::byte> data, std::uint32_t before = 0) {
    std::uint32_t crc = ~before;
    for (const std::byte value : data) {
        crc ^= std::to_integer<std::uint32_t>(value);
        for (int bit = 0; bit < 8; ++bit)
            crc = (crc & 1U) != 0 ? (crc >> 1U) ^ 0x82F63B78U : crc >> 1U;
    }
    return ~crc;
}

}  // namespace petacq::test

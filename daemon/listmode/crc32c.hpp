// CRC-32C (Castagnoli), the checksum of list-mode files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace petacq::daemon {

/// CRC-32C of `data`, or, given the CRC of A as `before`, of A followed by `data`. Any thread.
std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before = 0);

/// CRC-32C of A followed by B, from the CRC of each and the length of B in bytes.
std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t bytes_b);

}  // namespace petacq::daemon

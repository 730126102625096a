// CRC-32C (Castagnoli), the checksum of list-mode files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace petacq::daemon {

/// CRC-32C of `data`; with `before`, of what gave `before` followed by `data`. Uses SSE4.2 where the
/// processor has it. Any thread.
std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before = 0);

/// The same by tables, on any processor.
std::uint32_t crc32c_by_table(std::span<const std::byte> data, std::uint32_t before = 0);

/// CRC-32C of A followed by B, from the CRC of each and the length of B in bytes.
std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t bytes_b);

}  // namespace petacq::daemon

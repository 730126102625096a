// The layout of list-mode files (.plm): file header, blocks, index, trailer.
// docs/reference/list-mode-format.md describes it byte by byte. All numbers are little-endian, and a CRC-32C
// covers every byte.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "daemon/listmode/crc32c.hpp"
#include "gpu/base/records.hpp"

namespace petacq::daemon {

static_assert(std::endian::native == std::endian::little, "records are written as they are in memory");

enum class RecordKind : std::uint32_t {
    coincidences = 1,
    singles = 2,
    tags = 3,
    seconds = 4,  ///< described by the file itself: daemon/seconds
    triples = 5,
};

/// Whether the number names a kind.
bool is_known(RecordKind kind);
/// "coincidences", "singles", "tags", "seconds", "triples".
const char* name_of(RecordKind kind);
/// 32, 16, 16, 48, or 0 for seconds, whose size the file header gives: a multiple of 64.
std::uint32_t record_bytes_of(RecordKind kind);
/// Whether a file header may give this kind and size. False for kinds that this version does not know.
bool is_record(RecordKind kind, std::uint32_t record_bytes);

using Magic = std::array<char, 8>;
inline constexpr Magic file_magic = {'P', 'E', 'T', 'A', 'C', 'Q', 'L', 'M'};
inline constexpr Magic block_magic = {'P', 'L', 'M', 'B', 'L', 'O', 'C', 'K'};
inline constexpr Magic trailer_magic = {'P', 'L', 'M', 'T', 'R', 'A', 'I', 'L'};
inline constexpr std::uint32_t plain_version = 1;
inline constexpr std::uint32_t compressed_version = 2;  ///< blocks may be compressed
/// The same, and a closing description: what is known only at the end of the file.
inline constexpr std::uint32_t closing_version = 3;
inline constexpr std::uint32_t header_alignment = 4096;
inline constexpr std::uint32_t max_header_bytes = 64U << 20;
inline constexpr std::uint32_t min_block_bytes = 128;
inline constexpr std::uint32_t max_block_bytes = 1U << 30;

/// The start of the file. The JSON text follows, then zeros up to header_bytes.
struct FileHeader {
    Magic magic = file_magic;
    std::uint32_t version = plain_version;
    std::uint32_t header_bytes = 0;  ///< offset of the first block, a multiple of 4096
    RecordKind kind = RecordKind::coincidences;
    std::uint32_t record_bytes = 0;
    std::uint32_t block_bytes = 0;  ///< size of a full block, its header included
    std::uint32_t description_bytes = 0;
    std::uint32_t description_crc = 0;  ///< of the JSON text and the zeros after it
    std::uint32_t header_crc = 0;       ///< of the bytes before this field
};
static_assert(sizeof(FileHeader) == 40);

/// The form of the stored records.
enum class BlockCodec : std::uint32_t { plain = 0, zstd = 1 };

/// Precedes the records of each block.
struct BlockHeader {
    Magic magic = block_magic;
    std::uint64_t number = 0;  ///< 0, 1, 2, ...
    std::uint32_t records = 0;
    std::uint32_t record_bytes = 0;
    std::uint64_t first_time = 0;    ///< ticks, of the first record
    std::uint64_t last_time = 0;     ///< ticks, of the last record
    std::uint64_t first_record = 0;  ///< number of records in the previous blocks
    std::uint32_t payload_crc = 0;   ///< of the records as they are in memory
    std::uint32_t stored_bytes = 0;  ///< of the records as they lie in the file; 0 in version 1: as they are
    BlockCodec codec = BlockCodec::plain;
    std::uint32_t header_crc = 0;  ///< of the bytes before this field

    [[nodiscard]] std::uint64_t payload_bytes() const { return std::uint64_t{records} * record_bytes; }
};
static_assert(sizeof(BlockHeader) == 64);

/// One per block, after the last block.
struct IndexEntry {
    std::uint64_t offset = 0;  ///< of the block's header in the file
    std::uint32_t records = 0;
    std::uint32_t payload_crc = 0;
    std::uint64_t first_time = 0;
    std::uint64_t last_time = 0;
    bool operator==(const IndexEntry&) const = default;
};
static_assert(sizeof(IndexEntry) == 32);

/// The last 64 bytes of a file that was closed properly.
struct Trailer {
    Magic magic = trailer_magic;
    std::uint64_t index_offset = 0;
    std::uint64_t blocks = 0;
    std::uint64_t records = 0;
    std::uint32_t index_crc = 0;
    std::uint32_t payload_crc = 0;  ///< of all records of the file, in order
    /// The JSON object between index and trailer, whose members replace those of the header; version 3.
    std::uint32_t closing_bytes = 0;
    std::uint32_t closing_crc = 0;
    std::array<std::uint32_t, 3> reserved{};
    std::uint32_t trailer_crc = 0;  ///< of the bytes before this field
};
static_assert(sizeof(Trailer) == 64);

/// Throws std::invalid_argument unless it is a multiple of 64 within the limits.
void check_block_bytes(std::uint32_t block_bytes);

/// The whole file header with its JSON. Throws std::invalid_argument for an invalid block or record size or a
/// description that is too long. Text that is not UTF-8 is replaced, never refused. `record_bytes`: for kinds
/// without a size of their own.
std::vector<std::byte> make_file_header(RecordKind kind, std::uint32_t block_bytes,
                                        const nlohmann::json& description,
                                        std::uint32_t version = plain_version,
                                        std::uint32_t record_bytes = 0);

/// A description as text. Replaces what is not UTF-8.
std::string description_text(const nlohmann::json& description);

/// Sets the CRC at the end of a FileHeader, BlockHeader or Trailer, which covers the fields before it.
template <class Part>
void seal(Part& part) {
    auto* const bytes = reinterpret_cast<std::byte*>(&part);
    const std::uint32_t crc = crc32c({bytes, sizeof part - sizeof crc});
    std::memcpy(bytes + sizeof part - sizeof crc, &crc, sizeof crc);
}
/// Whether magic and CRC are right.
template <class Part>
bool is_sealed(const Part& part) {
    Part sealed = part;
    seal(sealed);
    return part.magic == Part{}.magic && std::memcmp(&sealed, &part, sizeof part) == 0;
}

/// The time of the record at `record`: the first field of every kind.
std::uint64_t time_of(const std::byte* record);
inline std::uint64_t time_of(const gpu::Coincidence& pair) {
    return pair.time;
}
inline std::uint64_t time_of(const gpu::Single& single) {
    return single.time;
}
inline std::uint64_t time_of(const gpu::Tag& tag) {
    return tag.time;
}
inline std::uint64_t time_of(const gpu::Triple& triple) {
    return triple.pair.time;
}

/// Whether `b` comes after `a`, or is equal. Coincidences are ordered by (time, kind, crystal_a, dt,
/// crystal_b, energy_a, energy_b), singles by (time, crystal, energy), tags by (time, source, channel, kind,
/// value), triples as their pairs, and those of a pair by (third, gamma_dt, gamma_crystal, gamma_energy). A
/// file with two equal pairs has the triples of the one before those of the other.
bool in_order(const gpu::Coincidence& a, const gpu::Coincidence& b);
bool in_order(const gpu::Single& a, const gpu::Single& b);
bool in_order(const gpu::Tag& a, const gpu::Tag& b);
bool in_order(const gpu::Triple& a, const gpu::Triple& b);

}  // namespace petacq::daemon

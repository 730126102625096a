#include "daemon/listmode/format.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

namespace petacq::daemon {

namespace {

struct KindEntry {
    const char* name;
    RecordKind kind;
    std::uint32_t record_bytes;
};
constexpr KindEntry kinds[] = {
    {"coincidences", RecordKind::coincidences, sizeof(gpu::Coincidence)},
    {"singles", RecordKind::singles, sizeof(gpu::Single)},
    {"tags", RecordKind::tags, sizeof(gpu::Tag)},
    {"seconds", RecordKind::seconds, 0},
    {"triples", RecordKind::triples, sizeof(gpu::Triple)},
};

const KindEntry& entry_of(RecordKind kind) {
    assert(is_known(kind));
    return kinds[static_cast<std::uint32_t>(kind) - 1];
}

}  // namespace

bool is_known(RecordKind kind) {
    return std::any_of(std::begin(kinds), std::end(kinds),
                       [=](const KindEntry& k) { return k.kind == kind; });
}

const char* name_of(RecordKind kind) {
    return is_known(kind) ? entry_of(kind).name : "unknown records";
}

std::uint32_t record_bytes_of(RecordKind kind) {
    return is_known(kind) ? entry_of(kind).record_bytes : 0;
}

bool is_record(RecordKind kind, std::uint32_t record_bytes) {
    const std::uint32_t fixed = record_bytes_of(kind);
    if (fixed != 0) return record_bytes == fixed;
    return kind == RecordKind::seconds && record_bytes != 0 && record_bytes % 64 == 0 &&
           record_bytes <= max_block_bytes - sizeof(BlockHeader);
}

void check_block_bytes(std::uint32_t block_bytes) {
    if (block_bytes < min_block_bytes || block_bytes > max_block_bytes || block_bytes % 64 != 0) {
        throw std::invalid_argument(
            "block size of " + std::to_string(block_bytes) + " bytes: expected a multiple of 64 from " +
            std::to_string(min_block_bytes) + " to " + std::to_string(max_block_bytes));
    }
}

std::string description_text(const nlohmann::json& description) {
    return description.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<std::byte> make_file_header(RecordKind kind, std::uint32_t block_bytes,
                                        const nlohmann::json& description, std::uint32_t version,
                                        std::uint32_t record_bytes) {
    check_block_bytes(block_bytes);
    if (record_bytes == 0) record_bytes = record_bytes_of(kind);
    if (!is_record(kind, record_bytes) || record_bytes > block_bytes - sizeof(BlockHeader)) {
        throw std::invalid_argument(std::string(name_of(kind)) + " of " + std::to_string(record_bytes) +
                                    " bytes in blocks of " + std::to_string(block_bytes));
    }
    const std::string text = description_text(description);
    const std::size_t bytes =
        (sizeof(FileHeader) + text.size() + header_alignment - 1) / header_alignment * header_alignment;
    if (bytes > max_header_bytes)
        throw std::invalid_argument("list-mode description: expected at most 64 MiB");

    std::vector<std::byte> out(bytes);
    std::memcpy(out.data() + sizeof(FileHeader), text.data(), text.size());
    FileHeader header;
    header.version = version;
    header.header_bytes = static_cast<std::uint32_t>(bytes);
    header.kind = kind;
    header.record_bytes = record_bytes;
    header.block_bytes = block_bytes;
    header.description_bytes = static_cast<std::uint32_t>(text.size());
    header.description_crc = crc32c(std::span(out).subspan(sizeof(FileHeader)));
    seal(header);
    std::memcpy(out.data(), &header, sizeof header);
    return out;
}

std::uint64_t time_of(const std::byte* record) {
    std::uint64_t time = 0;
    std::memcpy(&time, record, sizeof time);
    return time;
}

bool in_order(const gpu::Coincidence& a, const gpu::Coincidence& b) {
    // The time decides for nearly every pair of records.
    if (a.time != b.time) return a.time < b.time;
    return std::tie(a.kind, a.crystal_a, a.dt, a.crystal_b, a.energy_a, a.energy_b) <=
           std::tie(b.kind, b.crystal_a, b.dt, b.crystal_b, b.energy_a, b.energy_b);
}

bool in_order(const gpu::Triple& a, const gpu::Triple& b) {
    if (!in_order(a.pair, b.pair)) return false;
    if (!in_order(b.pair, a.pair)) return true;  // of two pairs
    return std::tie(a.third, a.gamma_dt, a.gamma_crystal, a.gamma_energy) <=
           std::tie(b.third, b.gamma_dt, b.gamma_crystal, b.gamma_energy);
}

bool in_order(const gpu::Tag& a, const gpu::Tag& b) {
    return std::tie(a.time, a.source, a.channel, a.kind, a.value) <=
           std::tie(b.time, b.source, b.channel, b.kind, b.value);
}

bool in_order(const gpu::Single& a, const gpu::Single& b) {
    return std::tie(a.time, a.crystal, a.energy) <= std::tie(b.time, b.crystal, b.energy);
}

}  // namespace petacq::daemon

// List-mode files as fuzz inputs: with checksums that are right, so that the fuzzer gets past them.
#pragma once

#include <vector>

#include "daemon/listmode/format.hpp"
#include "tests/fuzz/base/fuzz.hpp"

namespace petacq::fuzz {

template <class Part>
void seal_at(std::vector<std::uint8_t>& bytes, std::size_t offset) {
    Part part;
    if (offset + sizeof part > bytes.size()) return;
    std::memcpy(&part, bytes.data() + offset, sizeof part);
    daemon::seal(part);
    std::memcpy(bytes.data() + offset, &part, sizeof part);
}

inline std::uint32_t crc_of(const std::vector<std::uint8_t>& bytes, std::uint64_t offset,
                            std::uint64_t size) {
    if (offset > bytes.size()) return 0;
    const auto* const from = reinterpret_cast<const std::byte*>(bytes.data()) + offset;
    return daemon::crc32c(
        {from, static_cast<std::size_t>(std::min<std::uint64_t>(size, bytes.size() - offset))});
}

/// The input behind its first byte. If that byte is odd, all checksums of the file are set right.
inline std::vector<std::uint8_t> listmode_input(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return {};
    std::vector<std::uint8_t> bytes(data + 1, data + size);
    if (data[0] % 2 == 0 || bytes.size() < sizeof(daemon::FileHeader)) return bytes;
    daemon::FileHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    header.description_crc = crc_of(bytes, sizeof header, header.header_bytes - std::uint64_t{sizeof header});
    std::memcpy(bytes.data(), &header, sizeof header);
    seal_at<daemon::FileHeader>(bytes, 0);
    const auto first = static_cast<std::uint8_t>(daemon::block_magic[0]);
    for (std::size_t at = sizeof header; at + sizeof(daemon::BlockHeader) <= bytes.size(); ++at) {
        if (bytes[at] != first ||
            std::memcmp(bytes.data() + at, daemon::block_magic.data(), daemon::block_magic.size()) != 0)
            continue;
        daemon::BlockHeader block;
        std::memcpy(&block, bytes.data() + at, sizeof block);
        block.payload_crc =
            crc_of(bytes, at + sizeof block, std::uint64_t{block.records} * block.record_bytes);
        std::memcpy(bytes.data() + at, &block, sizeof block);
        seal_at<daemon::BlockHeader>(bytes, at);
    }
    if (bytes.size() < sizeof(daemon::Trailer)) return bytes;
    const std::size_t end = bytes.size() - sizeof(daemon::Trailer);
    daemon::Trailer trailer;
    std::memcpy(&trailer, bytes.data() + end, sizeof trailer);
    if (trailer.index_offset <= end)
        trailer.index_crc = crc_of(bytes, trailer.index_offset, end - trailer.index_offset);
    std::memcpy(bytes.data() + end, &trailer, sizeof trailer);
    seal_at<daemon::Trailer>(bytes, end);
    return bytes;
}

}  // namespace petacq::fuzz

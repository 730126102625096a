// Sets of list-mode files, written and read in the tests.
#pragma once

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/listmode/reader.hpp"
#include "daemon/listmode/set.hpp"
#include "daemon/listmode/writer.hpp"
#include "tests/daemon/listmode/support.hpp"

namespace petacq::test {

constexpr std::uint32_t never_ms = 3'600'000;

inline daemon::ListModeOptions set_options(std::uint32_t files, std::uint32_t block_bytes = 192) {
    daemon::ListModeOptions options;
    options.files = files;
    options.block_bytes = block_bytes;
    options.queue_blocks = 8;
    options.sync_interval_ms = never_ms;
    return options;
}

/// Appends in pieces of random size, up to many blocks, large enough to be taken over or not.
inline void append_in_pieces(daemon::ListModeWriter& writer, const gpu::RecordVector<gpu::Coincidence>& all,
                             unsigned seed, std::size_t most = 700) {
    std::minstd_rand random(seed);
    for (std::span<const gpu::Coincidence> rest(all); !rest.empty();) {
        const auto taken = std::min<std::size_t>(random() % most, rest.size());
        writer.append(gpu::RecordVector<gpu::Coincidence>(rest.begin(),
                                                          rest.begin() + static_cast<std::ptrdiff_t>(taken)));
        rest = rest.subspan(taken);
    }
}

struct FoundRecords {
    gpu::RecordVector<gpu::Coincidence> records;
    daemon::Condition condition;
};

/// Everything that a reader finds, whatever the condition.
inline FoundRecords read_what_is_there(const std::filesystem::path& file) {
    daemon::ListModeReader reader(file);
    FoundRecords found;
    while (reader.next()) {
        const auto records = reader.coincidences();
        found.records.insert(found.records.end(), records.begin(), records.end());
    }
    CHECK_FALSE(reader.next());
    found.condition = reader.condition();
    CHECK(found.condition.records == found.records.size());
    return found;
}

/// A block as it lies in a file, found without the reader.
struct PlainBlock {
    std::uint64_t end = 0;  ///< offset
    daemon::BlockHeader header;
};

/// The blocks at the start of a file that lie in its first `bytes`.
inline std::vector<PlainBlock> blocks_within(const std::string& content, std::size_t bytes) {
    std::vector<PlainBlock> blocks;
    daemon::FileHeader file;
    std::memcpy(&file, content.data(), sizeof file);
    for (std::size_t at = file.header_bytes; at + sizeof(daemon::BlockHeader) <= bytes;) {
        PlainBlock block;
        std::memcpy(&block.header, content.data() + at, sizeof block.header);
        if (block.header.magic != daemon::block_magic) break;
        at += sizeof block.header + std::size_t{block.header.records} * block.header.record_bytes;
        if (at > bytes) break;
        block.end = at;
        blocks.push_back(block);
    }
    return blocks;
}

}  // namespace petacq::test

// Runs with tags.
#pragma once

#include <algorithm>
#include <span>
#include <tuple>

#include "daemon/listmode/file.hpp"
#include "tests/tools/petlm/support.hpp"

namespace petacq::test {

inline gpu::Tag tag(std::uint64_t time, unsigned channel, gpu::TagKind kind, std::uint32_t value = 0) {
    return {time, value, 0, static_cast<std::uint8_t>(channel), static_cast<std::uint8_t>(kind)};
}

/// Writes them in their order, 16 in a block. Replaces an earlier file.
inline void write_tags(const std::filesystem::path& file, std::vector<gpu::Tag> tags,
                       const nlohmann::json& description = file_description(export_scanner())) {
    const auto order = [](const gpu::Tag& t) {
        return std::tie(t.time, t.source, t.channel, t.kind, t.value);
    };
    std::sort(tags.begin(), tags.end(),
              [&](const gpu::Tag& a, const gpu::Tag& b) { return order(a) < order(b); });
    std::filesystem::remove(file);
    constexpr std::size_t in_block = 16;
    daemon::ListModeFile out(file, daemon::RecordKind::tags,
                             sizeof(daemon::BlockHeader) + in_block * sizeof(gpu::Tag), description);
    for (std::size_t at = 0; at < tags.size(); at += in_block)
        out.write_block(std::as_bytes(std::span(tags).subspan(at, std::min(in_block, tags.size() - at))));
    out.close();
}

}  // namespace petacq::test

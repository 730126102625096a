#include <fmt/format.h>

#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "daemon/listmode_file.hpp"
#include "daemon/listmode_reader.hpp"
#include "tools/petlm/commands.hpp"
#include "tools/petlm/progress.hpp"

namespace petacq::petlm {
namespace {

daemon::Condition look_through(const std::filesystem::path& file) {
    daemon::ListModeReader reader(file);
    Progress progress("looking through " + file.filename().string(), reader.file_bytes());
    while (reader.next())
        progress.show(reader.block_offset());
    return reader.condition();
}

// The description is kept, and says from now on that the file is not the whole.
nlohmann::json described(const daemon::ListModeReader& reader, const daemon::Condition& condition) {
    auto description = reader.description();
    if (condition.state != daemon::FileState::complete) {
        description["recovered"] = {{"from", reader.path().filename().string()},
                                    {"state", daemon::name_of(condition.state)},
                                    {"missing_records", condition.missing_records},
                                    {"lost_bytes", condition.damaged_bytes + condition.tail_bytes}};
    }
    return description;
}

void copy_blocks(daemon::ListModeReader& reader, daemon::ListModeFile& out) {
    Progress progress("copying " + reader.path().filename().string(), reader.file_bytes());
    std::vector<std::byte> block;
    while (reader.next()) {
        const auto payload = reader.payload();
        block.resize(sizeof(daemon::BlockHeader) + payload.size());
        std::memcpy(block.data() + sizeof(daemon::BlockHeader), payload.data(), payload.size());
        out.write_block(block);
        progress.show(reader.block_offset());
    }
    out.close();
}

}  // namespace

int recover(const std::filesystem::path& file, std::filesystem::path output) {
    if (output.empty()) {
        output = file;
        output.replace_extension(".recovered.plm");
    }
    if (std::filesystem::exists(output)) {
        throw UsageError(output.string() + " exists, nothing was written; name another with --output");
    }
    const daemon::Condition condition = look_through(file);

    daemon::ListModeReader reader(file);
    daemon::ListModeFile out(output, reader.kind(), reader.header().block_bytes,
                             described(reader, condition));
    copy_blocks(reader, out);

    std::cout << fmt::format("{}: {}\n", file.string(), condition.summary());
    for (const auto& damage : condition.damage) {
        std::cout << fmt::format("missing: at offset {}, {} bytes: {}\n", damage.offset, damage.bytes,
                                 damage.what);
    }
    if (condition.tail_bytes != 0) {
        std::cout << fmt::format("missing: {} bytes after the last whole block\n", condition.tail_bytes);
    }
    std::cout << fmt::format("{}: {} blocks, {} records recovered\n", output.string(), out.blocks(),
                             out.records());
    return condition.state == daemon::FileState::damaged ? has_problems : ok;
}

}  // namespace petacq::petlm

#include "tools/petlm/resort/singles_files.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "daemon/listmode/reader.hpp"
#include "daemon/listmode/set.hpp"
#include "tools/petlm/records/run.hpp"
#include "tools/petlm/records/status.hpp"

namespace petacq::petlm {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
    throw BadInput(file.string() + ": " + why + "; 'petlm recover' copies its whole blocks");
}

}  // namespace

SinglesFiles::SinglesFiles(const std::filesystem::path& target) {
    for (const auto& file : record_files(target, daemon::RecordKind::singles))
        add(file);
}

SinglesFiles::SinglesFiles(std::vector<Block> blocks, const nlohmann::json& description,
                           std::uint32_t block_bytes)
    : description_(std::make_unique<nlohmann::json>(description)),
      block_bytes_(block_bytes),
      blocks_(std::move(blocks)) {}

SinglesFiles::~SinglesFiles() = default;
SinglesFiles::SinglesFiles(SinglesFiles&&) noexcept = default;

void SinglesFiles::add(const std::filesystem::path& file) {
    const daemon::ListModeReader part(file);
    if (part.kind() != daemon::RecordKind::singles) {
        throw daemon::NotListMode(file.string() + ": holds " + daemon::name_of(part.kind()) +
                                  ", expected singles");
    }
    if (!part.trailer()) refuse(file, "incomplete: it has no index");
    if (!description_) {
        description_ = std::make_unique<nlohmann::json>(part.description());
        description_->erase("part");
        block_bytes_ = part.header().block_bytes;
    }
    const std::uint32_t files = part.condition().files;
    const auto first = static_cast<std::uint32_t>(files_.size());
    for (std::uint32_t i = 0; i < files; ++i) {
        files_.push_back(std::make_unique<daemon::ListModeFileReader>(
            files == 1 ? part.path() : daemon::file_of_set(part.path(), i)));
    }
    std::uint32_t next = 0;
    for (const daemon::IndexEntry& entry : part.index()) {
        const Block block{entry.offset, entry.first_time, entry.last_time, entry.records, first + next};
        const bool in_order = blocks_.empty() || blocks_.back().last_time <= block.first_time;
        if (!in_order || block.first_time > block.last_time)
            refuse(file, "its index is not in order of time");
        blocks_.push_back(block);
        next = (next + 1) % files;
    }
}

std::span<const SinglesFiles::Block> SinglesFiles::blocks_in(gpu::TickRange range) const {
    const auto begin = std::partition_point(blocks_.begin(), blocks_.end(),
                                            [&](const Block& b) { return b.last_time < range.start; });
    const auto end =
        std::partition_point(begin, blocks_.end(), [&](const Block& b) { return b.first_time < range.end; });
    return {begin, end};
}

void SinglesFiles::receive(std::span<const Block> blocks, std::vector<gpu::Single> singles) {
    received_blocks_ = blocks;
    received_ = std::move(singles);
}

std::span<const gpu::Single> SinglesFiles::read(const Block& block, daemon::LoadedBlock& memory) const {
    if (files_.empty()) {
        std::size_t before = 0;
        for (const Block& b : received_blocks_) {
            if (&b == &block) return std::span(received_).subspan(before, block.records);
            before += b.records;
        }
        throw std::logic_error("singles of another host are read before they were received");
    }
    const daemon::ListModeFileReader& file = *files_[block.file];
    std::string why;
    if (!file.load(block.offset, memory, why)) refuse(file.path(), why);
    const std::span singles(reinterpret_cast<const gpu::Single*>(memory.records.data()),
                            memory.records.size() / sizeof(gpu::Single));
    if (singles.size() != block.records || singles.front().time != block.first_time ||
        singles.back().time != block.last_time) {
        refuse(file.path(), "a block and its entry in the index disagree");
    }
    return singles;
}

}  // namespace petacq::petlm

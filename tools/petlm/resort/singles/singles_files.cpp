#include "tools/petlm/resort/singles/singles_files.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "daemon/listmode/reader.hpp"
#include "daemon/listmode/set.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
    throw BadInput(file.string() + ": " + why + "; 'petlm recover' copies its whole blocks");
}

}  // namespace

SinglesFiles::SinglesFiles() = default;

SinglesFiles::SinglesFiles(const std::filesystem::path& target) {
    for (const auto& file : record_files(target, daemon::RecordKind::singles))
        add(file);
}

SinglesFiles::SinglesFiles(const nlohmann::json& description, std::uint32_t block_bytes)
    : description_(std::make_unique<nlohmann::json>(description)), block_bytes_(block_bytes) {}

SinglesFiles SinglesFiles::followed(const std::filesystem::path& run) {
    SinglesFiles files;
    files.run_ = run;
    files.open_next_part();
    return files;
}

SinglesFiles::~SinglesFiles() = default;
SinglesFiles::SinglesFiles(SinglesFiles&&) noexcept = default;

nlohmann::json SinglesFiles::header_description() const {
    nlohmann::json description = files_.front()->header_description();
    description.erase("part");
    return description;
}

void SinglesFiles::add(const std::filesystem::path& file) {
    const daemon::ListModeReader part(file);
    if (!part.trailer()) refuse(file, "incomplete: it has no index");
    const auto first = static_cast<std::uint32_t>(files_.size());
    open(part);
    std::uint32_t next = first;
    for (const daemon::IndexEntry& entry : part.index()) {
        take({entry.offset, entry.first_time, entry.last_time, entry.records, next});
        if (++next == files_.size()) next = first;
    }
}

/// Opens the files of a part.
void SinglesFiles::open(const daemon::ListModeReader& part) {
    if (part.kind() != daemon::RecordKind::singles) {
        throw daemon::NotListMode(part.path().string() + ": holds " + daemon::name_of(part.kind()) +
                                  ", expected singles");
    }
    if (!description_) {
        description_ = std::make_unique<nlohmann::json>(part.description());
        description_->erase("part");
        block_bytes_ = part.header().block_bytes;
    }
    const std::uint32_t files = part.condition().files;
    for (std::uint32_t i = 0; i < files; ++i) {
        files_.push_back(std::make_unique<daemon::ListModeFileReader>(
            files == 1 ? part.path() : daemon::file_of_set(part.path(), i)));
    }
}

void SinglesFiles::take(const SinglesBlock& block) {
    const bool in_order = blocks_.empty() || blocks_.back().last_time <= block.first_time;
    if (!in_order || block.first_time > block.last_time)
        refuse(files_[block.file]->path(), "its blocks are not in order of time");
    blocks_.push_back(block);
}

bool SinglesFiles::extend(std::size_t most) {
    while (take_whole_blocks(most)) {
        if (record_files(run_, daemon::RecordKind::singles).size() == parts_) return true;
        if (!open_next_part()) return false;
    }
    return false;
}

/// False: not all of its files have their headers yet.
bool SinglesFiles::open_next_part() {
    const std::size_t before = files_.size();
    try {
        open(daemon::ListModeReader(record_files(run_, daemon::RecordKind::singles).at(parts_)));
    } catch (const std::exception&) {
        files_.resize(before);
        if (parts_ == 0) throw;
        return false;
    }
    ++parts_;
    number_ = 0;
    offsets_.clear();
    for (std::size_t file = before; file < files_.size(); ++file)
        offsets_.push_back(files_[file]->header().header_bytes);
    return true;
}

/// Of the last part. Returns whether it is complete.
bool SinglesFiles::take_whole_blocks(std::size_t most) {
    const std::size_t count = offsets_.size();
    const std::size_t first = files_.size() - count;
    for (std::size_t i = 0; i < count; ++i)
        files_[first + i]->refresh();
    for (; blocks_.size() < most; ++number_) {
        // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a part has files
        const std::size_t i = number_ % count;
        daemon::BlockHeader header;
        const auto end = files_[first + i]->find_block(offsets_[i], header);
        if (!end || header.number != number_) break;
        take({offsets_[i], header.first_time, header.last_time, header.records,
              static_cast<std::uint32_t>(first + i)});
        offsets_[i] = *end;
    }
    for (std::size_t i = 0; i < count; ++i) {
        const auto& trailer = files_[first + i]->trailer();
        if (!trailer || trailer->index_offset != offsets_[i]) return false;
    }
    return true;
}

void SinglesFiles::append(std::span<const SinglesBlock> blocks) {
    received_blocks_ = {};  // the blocks may move
    blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
}

std::span<const SinglesFiles::SinglesBlock> SinglesFiles::blocks_in(gpu::TickRange range) const {
    const auto begin = std::partition_point(blocks_.begin(), blocks_.end(),
                                            [&](const SinglesBlock& b) { return b.last_time < range.start; });
    const auto end = std::partition_point(begin, blocks_.end(), [&](const SinglesBlock& b) {
        return b.first_time < range.end || range.end == UINT64_MAX;
    });
    return {begin, end};
}

std::span<const gpu::Single> SinglesFiles::kept(std::span<const gpu::Single> of_block,
                                                std::vector<gpu::Single>& memory) const {
    if (!only_) return of_block;
    memory.clear();
    std::copy_if(of_block.begin(), of_block.end(), std::back_inserter(memory),
                 [&](const gpu::Single& s) { return only_->contains(s.time); });
    return memory;
}

void SinglesFiles::receive(std::span<const SinglesBlock> blocks, std::vector<gpu::Single> singles) {
    received_blocks_ = blocks;
    received_ = std::move(singles);
}

std::span<const gpu::Single> SinglesFiles::read(const SinglesBlock& block,
                                                daemon::LoadedBlock& memory) const {
    if (files_.empty()) {
        std::size_t before = 0;
        for (const SinglesBlock& b : received_blocks_) {
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
    check(block, singles);
    return singles;
}

void SinglesFiles::read(const SinglesBlock& block, daemon::LoadedBlock& memory,
                        std::span<gpu::Single> singles) const {
    if (files_.empty()) {
        std::ranges::copy(read(block, memory), singles.begin());
        return;
    }
    const daemon::ListModeFileReader& file = *files_[block.file];
    std::string why;
    if (!file.load(block.offset, memory, std::as_writable_bytes(singles), why)) refuse(file.path(), why);
    check(block, singles);
}

void SinglesFiles::check(const SinglesBlock& block, std::span<const gpu::Single> singles) const {
    if (singles.size() != block.records || singles.front().time != block.first_time ||
        singles.back().time != block.last_time) {
        refuse(files_[block.file]->path(), "a block and its header or entry in the index disagree");
    }
}

}  // namespace petacq::petlm

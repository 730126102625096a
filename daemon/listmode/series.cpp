#include "daemon/listmode/series.hpp"

#include <cassert>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/listmode/set.hpp"

namespace petacq::daemon {

std::filesystem::path ListModeLayout::path_of(std::size_t part, std::uint32_t file) const {
    std::filesystem::path name = path;
    if (split.any()) {
        char suffix[16];
        std::snprintf(suffix, sizeof suffix, "-%04zu", part + 1);
        name.replace_filename(path.stem().string() + suffix + path.extension().string());
    }
    return files == 1 ? name : file_of_set(name, file);
}

nlohmann::json ListModeLayout::description_of(std::size_t part, std::uint32_t file) const {
    nlohmann::json all = *description;
    if (split.any()) all["part"] = part + 1;
    if (files > 1) {
        all["file"] = file + 1;
        all["files"] = files;
    }
    return all;
}

BlockPlan::BlockPlan(ListModeLayout layout) : layout_(std::move(layout)) {
    start_part();
}

void BlockPlan::start_part() {
    bytes_.clear();
    if (layout_.split.bytes == 0) {
        bytes_.resize(layout_.files);
        return;
    }
    for (std::uint32_t file = 0; file < layout_.files; ++file) {
        bytes_.push_back(
            make_file_header(layout_.kind, layout_.block_bytes, layout_.description_of(next_.part, file))
                .size());
    }
}

bool BlockPlan::must_split(std::uint64_t first_time, std::uint64_t bytes) const {
    if (next_.number == 0) return false;
    const SplitOptions& split = layout_.split;
    if (split.ticks != 0 && first_time - start_time_ >= split.ticks) return true;
    const bool has_block = next_.number >= layout_.files;
    return split.bytes != 0 && has_block && bytes_[next_.file] + bytes > split.bytes;
}

BlockPlace BlockPlan::place(std::uint64_t first_time, std::uint64_t records) {
    const std::uint64_t bytes = sizeof(BlockHeader) + records * record_bytes_of(layout_.kind);
    if (must_split(first_time, bytes)) {
        next_ = {next_.part + 1, 0, 0, 0};
        start_part();
    }
    if (next_.number == 0) start_time_ = first_time;
    const BlockPlace place = next_;
    bytes_[place.file] += bytes;
    ++next_.number;
    next_.file = static_cast<std::uint32_t>(next_.number % layout_.files);
    next_.first_record += records;
    return place;
}

ListModeSeries::ListModeSeries(ListModeLayout layout, std::uint32_t file)
    : layout_(std::move(layout)), number_(file) {
    if (!layout_.on_first_record) open(0);
}

// When this throws, the previous file remains the last one.
void ListModeSeries::open(std::uint64_t first_record) {
    const std::size_t part = parts_.size();
    const std::filesystem::path path = layout_.path_of(part, number_);
    auto next = std::make_unique<ListModeFile>(path, layout_.kind, layout_.block_bytes,
                                               layout_.description_of(part, number_), layout_.compression, 0,
                                               static_cast<bool>(layout_.closing));
    if (file_) {
        finished_.push_back(file_->identity());
        bytes_before_ += file_->bytes();
        parts_.back().bytes = file_->bytes();
    }
    file_ = std::move(next);
    ListModePart& current = parts_.emplace_back();
    current.name = path.filename().string();
    current.first_record = first_record;
}

void ListModeSeries::start_part(std::uint64_t first_record, std::uint64_t first_time) {
    close(first_time);
    open(first_record);
    part_time_ = first_time;
}

void ListModeSeries::close(std::optional<std::uint64_t> next_part) {
    if (!file_) return;
    if (!layout_.closing) return file_->close();
    const ListModePart& part = parts_.back();
    file_->close(layout_.closing(
        {part_time_, next_part, part.records != 0 ? std::optional(part.last_time) : std::nullopt}));
}

void ListModeSeries::write_block(const BlockOfRecords& block, std::uint64_t first_record) {
    assert(block.number % layout_.files == number_);
    if (!file_) open(first_record);
    file_->write_block(block);
    ListModePart& current = parts_.back();
    if (current.records == 0) {
        current.first_record = first_record;
        current.first_time = time_of(block.stretches.front().data());
    }
    const auto& last = block.stretches.back();
    current.last_time = time_of(last.data() + last.size() - record_bytes_of(layout_.kind));
    current.records = file_->records();
}

void ListModeSeries::check() {
    if (!file_) return;
    file_->check();
    if (finished_.empty()) return;
    checked_ = (checked_ + 1) % finished_.size();
    finished_[checked_].check();
}

std::vector<FileIdentity> ListModeSeries::identities() const {
    std::vector<FileIdentity> all = finished_;
    if (file_) all.push_back(file_->identity());
    return all;
}

std::vector<ListModePart> ListModeSeries::parts() const {
    std::vector<ListModePart> all = parts_;
    if (file_) all.back().bytes = file_->bytes();
    return all;
}

}  // namespace petacq::daemon

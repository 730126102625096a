#include "daemon/listmode/series.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

namespace petacq::daemon {

ListModeSeries::ListModeSeries(const std::filesystem::path& path, RecordKind kind, std::uint32_t block_bytes,
                               const nlohmann::json& description, const SplitOptions& split)
    : path_(path),
      kind_(kind),
      block_bytes_(block_bytes),
      description_(std::make_shared<const nlohmann::json>(description)),
      split_(split) {
    open_next();
}

void ListModeSeries::open_next() {
    std::filesystem::path path = path_;
    nlohmann::json description = *description_;
    if (split_.any()) {
        const std::size_t number = finished_.size() + (file_ ? 2 : 1);
        char suffix[16];
        std::snprintf(suffix, sizeof suffix, "-%04zu", number);
        path.replace_filename(path_.stem().string() + suffix + path_.extension().string());
        description["part"] = number;
    }
    // When this throws, the previous file remains the last one.
    auto next = std::make_unique<ListModeFile>(path, kind_, block_bytes_, description);
    if (file_) {
        finished_.push_back(current_);
        finished_.back().bytes = file_->bytes();
        finished_identities_.push_back(file_->identity());
        bytes_before_ += file_->bytes();
    }
    file_ = std::move(next);
    current_ = {};
    current_.name = path.filename().string();
}

bool ListModeSeries::must_split(std::span<const std::byte> block) const {
    if (!split_.any() || file_->blocks() == 0) return false;
    if (split_.bytes != 0 && file_->bytes() + block.size() > split_.bytes) return true;
    const std::uint64_t time = time_of(block.data() + sizeof(BlockHeader));
    return split_.ticks != 0 && time - current_.first_time >= split_.ticks;
}

void ListModeSeries::write_block(std::span<std::byte> block) {
    if (must_split(block)) {
        file_->close();
        open_next();
    }
    if (file_->blocks() == 0) current_.first_time = time_of(block.data() + sizeof(BlockHeader));
    file_->write_block(block);
    current_.last_time = time_of(block.data() + block.size() - record_bytes_of(kind_));
    current_.records = file_->records();
}

void ListModeSeries::close() {
    file_->close();
}

void ListModeSeries::check() {
    file_->check();
    if (finished_identities_.empty()) return;
    checked_ = (checked_ + 1) % finished_identities_.size();
    finished_identities_[checked_].check();
}

std::vector<FileIdentity> ListModeSeries::identities() const {
    std::vector<FileIdentity> all = finished_identities_;
    all.push_back(file_->identity());
    return all;
}

std::vector<ListModePart> ListModeSeries::parts() const {
    std::vector<ListModePart> all = finished_;
    all.push_back(current_);
    all.back().bytes = file_->bytes();
    return all;
}

}  // namespace petacq::daemon

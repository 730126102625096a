#include "tools/petlm/records/record_source.hpp"

#include <nlohmann/json.hpp>

#include "daemon/listmode/set.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/origin.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {

RecordSource::RecordSource(const std::filesystem::path& target, daemon::RecordKind kind)
    : target_(target), kind_(kind), files_(record_files(target, kind)) {
    for (const auto& file : files_)
        total_bytes_ += daemon::bytes_of_files(file);
    open();
    description_ = std::make_unique<nlohmann::json>(reader_->description());
    description_->erase("part");
    block_bytes_ = reader_->header().block_bytes;
}

RecordSource::~RecordSource() = default;

const daemon::Coverage& RecordSource::coverage() const {
    if (!coverage_) {
        std::vector<nlohmann::json> descriptions;
        for (const auto& file : files_)
            descriptions.push_back(daemon::ListModeReader(file).description());
        coverage_ = coverage_of_files(target_, kind_, descriptions, run_of(target_, descriptions.front()));
    }
    return *coverage_;
}

void RecordSource::open() {
    reader_ = std::make_unique<daemon::ListModeReader>(files_[current_]);
    if (reader_->kind() != kind_) {
        throw daemon::NotListMode(files_[current_].string() + ": holds " + daemon::name_of(reader_->kind()) +
                                  ", expected " + daemon::name_of(kind_));
    }
    if (reader_->trailer()) records_in_files_ += reader_->trailer()->records;
    if (from_ != 0 || to_ != UINT64_MAX) reader_->select(from_, to_);
}

void RecordSource::select(std::uint64_t from, std::uint64_t to) {
    from_ = from;
    to_ = to;
    reader_->select(from, to);
}

bool RecordSource::next() {
    for (;;) {
        const bool found = reader_->next();
        const daemon::Condition& condition = reader_->condition();
        const bool whole = condition.state == daemon::FileState::complete ||
                           (takes_truncated_ && condition.state == daemon::FileState::truncated);
        if (condition.damage_count != 0 || (!found && !whole)) {
            throw BadInput(files_[current_].string() + ": " +
                           (found ? std::string("damaged") : condition.summary()) +
                           "; 'petlm recover' copies its whole blocks");
        }
        if (found) return true;
        if (current_ + 1 == files_.size()) return false;
        bytes_done_ += reader_->file_bytes();
        ++current_;
        open();
    }
}

}  // namespace petacq::petlm

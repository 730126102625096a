#include "tools/petlm/records/delayeds_weight.hpp"

#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {

DelayedsWeight::DelayedsWeight(const std::filesystem::path& target) {
    const auto run = std::filesystem::is_directory(target) ? target : target.parent_path();
    try {
        reader_ =
            std::make_unique<daemon::SecondsReader>(record_files(run, daemon::RecordKind::seconds).front());
        field_ = reader_->find("delayeds_weight");
        if (field_ == nullptr || !reader_->next()) reader_.reset();
    } catch (const daemon::NotListMode&) {
        // A run without seconds, or with a file that says nothing.
    }
}

double DelayedsWeight::at(std::uint64_t time) {
    while (reader_ != nullptr && reader_->start() <= time) {
        weight_ = reader_->values(*field_).number();
        if (!reader_->next()) reader_.reset();
    }
    return weight_;
}

}  // namespace petacq::petlm

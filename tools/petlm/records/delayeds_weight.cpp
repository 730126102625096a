#include "tools/petlm/records/delayeds_weight.hpp"

#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {

DelayedsWeight::DelayedsWeight(const std::filesystem::path& target) {
    const auto run =
        std::filesystem::is_directory(target) ? target : std::filesystem::absolute(target).parent_path();
    try {
        reader_ =
            std::make_unique<daemon::SecondsReader>(record_files(run, daemon::RecordKind::seconds).front());
        field_ = reader_->find("delayeds_weight");
        if (field_ == nullptr) {
            trouble_ = reader_->reader().path().string() + ": no delayeds_weight";
            reader_.reset();
        } else {
            advance();
        }
    } catch (const daemon::NotListMode& error) {
        trouble_ = error.what();
    }
}

void DelayedsWeight::advance() {
    if (reader_->next()) return;
    const daemon::ListModeReader& file = reader_->reader();
    if (file.condition().state != daemon::FileState::complete)
        trouble_ = file.path().string() + ": " + file.condition().summary();
    reader_.reset();
}

double DelayedsWeight::at(std::uint64_t time) {
    while (reader_ != nullptr && reader_->start() <= time) {
        weight_ = reader_->values(*field_).number();
        advance();
    }
    return weight_;
}

}  // namespace petacq::petlm

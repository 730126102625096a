#include "tools/petlm/records/recorded_seconds.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {

namespace {

constexpr std::uint64_t most_empty = 100;  ///< seconds

}  // namespace

RecordedSeconds::RecordedSeconds(const std::filesystem::path& run, const config::Geometry& geometry,
                                 std::uint64_t second)
    : geometry_(geometry), second_(second) {
    try {
        reader_ =
            std::make_unique<daemon::SecondsReader>(record_files(run, daemon::RecordKind::seconds).front());
        advance();
    } catch (const daemon::NotListMode&) {
        // A run without seconds, or with a file that says nothing.
    }
}

void RecordedSeconds::advance() {
    if (reader_ != nullptr && !reader_->next()) reader_.reset();
}

bool RecordedSeconds::any_from(std::uint64_t start) {
    while (reader_ != nullptr && reader_->start() < start)
        advance();
    return reader_ != nullptr;
}

RecordedSeconds::Second RecordedSeconds::first(std::uint64_t time) {
    std::uint64_t start = time / second_ * second_;
    // The run may have started within a second, or long before the first single.
    if (any_from(0) && reader_->start() <= time) start = reader_->start();
    return next(start, time);
}

RecordedSeconds::Second RecordedSeconds::next(std::uint64_t start, std::uint64_t time) {
    Second next{{start, 0}, daemon::BoardReport::none(geometry_)};
    if (any_from(start) && reader_->start() == start && reader_->length() != 0) {
        next.range.end = start + reader_->length();
        next.report = report();
        next.recorded = true;
        return next;
    }
    const bool long_empty = time > start && (time - start) / second_ > most_empty;
    next.range.end = long_empty ? time / second_ * second_ : (start / second_ + 1) * second_;
    if (reader_ != nullptr) next.range.end = std::min(next.range.end, std::max(reader_->start(), start + 1));
    return next;
}

daemon::BoardReport RecordedSeconds::report() const {
    daemon::BoardReport report = daemon::BoardReport::none(geometry_);
    if (const auto* lost = reader_->find("lost")) report.lost = reader_->values(*lost).number();
    if (const auto* late = reader_->find("late")) {
        if (late->type == daemon::FieldType::u64) report.late = reader_->values(*late).whole();
    }
    const auto by_module = [&](const char* name, std::vector<double>& numbers) {
        const auto* const field = reader_->find(name);
        if (field == nullptr || field->count != numbers.size()) return;
        const daemon::FieldValues values = reader_->values(*field);
        for (std::size_t i = 0; i < numbers.size(); ++i)
            numbers[i] = values.number(i);
    };
    by_module("module_temperature", report.temperature_C);
    by_module("module_dead_time", report.dead_time);
    return report;
}

}  // namespace petacq::petlm

#include "tools/petlm/resort/result/resorted_seconds.hpp"

#include <utility>

namespace petacq::petlm {

ResortedSeconds::ResortedSeconds(std::span<const ReportingRun> runs, HeardBoards heard,
                                 std::vector<gpu::TickRange> ranges, const config::Geometry& geometry,
                                 std::uint64_t ticks_per_s, const gpu::CoincidenceRules& rules,
                                 daemon::SecondsFile* file)
    : ranges_(std::move(ranges)),
      geometry_(geometry),
      module_of_(gpu::modules_of_crystals(geometry)),
      reports_(runs, heard, geometry),
      meter_(geometry, rules, ticks_per_s),
      file_(file),
      none_(gpu::IntervalSums::none(geometry)),
      sums_(none_) {}

void ResortedSeconds::add(std::uint64_t time, const gpu::IntervalSums& sums) {
    while (open_ < ranges_.size() && ranges_[open_].end <= time)
        measure();
    sums_ += sums;
}

void ResortedSeconds::finish() {
    while (open_ < ranges_.size())
        measure();
}

std::vector<std::uint64_t> ResortedSeconds::singles_of_modules() const {
    std::vector<std::uint64_t> singles(geometry_.bdm_count);
    for (std::size_t c = 0; c < module_of_.size(); ++c)
        singles[module_of_[c]] += std::uint64_t{sums_.unpaired[c]} + sums_.grouped[c];
    return singles;
}

void ResortedSeconds::measure() {
    const gpu::TickRange range = ranges_[open_++];
    const auto second = meter_.measure(range, sums_, reports_.of(range, singles_of_modules()));
    live_.add(*second, geometry_);
    if (file_ != nullptr) file_->append(*second);
    sums_ = none_;
}

}  // namespace petacq::petlm

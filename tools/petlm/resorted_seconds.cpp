#include "tools/petlm/resorted_seconds.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace petacq::petlm {

ResortedSeconds::ResortedSeconds(const std::filesystem::path& run, const config::Geometry& geometry,
                                 double tick_ps, const gpu::CoincidenceRules& rules)
    : ticks_per_s_(static_cast<std::uint64_t>(std::llround(1e12 / tick_ps))),
      reach_(rules.window + rules.delay.value_or(0)),
      recorded_(run, geometry, ticks_per_s_),
      meter_(geometry, rules, ticks_per_s_) {}

std::uint64_t ResortedSeconds::watermark(std::uint64_t next) {
    if (!open_) open_ = recorded_.first(next);
    const std::uint64_t end = open_->range.end;
    return end > UINT64_MAX - reach_ ? UINT64_MAX : end + reach_;
}

void ResortedSeconds::end(std::uint64_t next) {
    const std::uint64_t end = open_->range.end;
    submitted_.push_back(*std::exchange(open_, recorded_.next(end, next)));
}

bool ResortedSeconds::more(std::uint64_t last) {
    if (!open_ && recorded_.any_from(0)) open_ = recorded_.first(UINT64_MAX);
    return open_ && (recorded_.any_from(open_->range.end) || open_->range.end <= last);
}

void ResortedSeconds::end_all(std::uint64_t last) {
    if (!open_) return;
    if (!open_->recorded) open_->range.end = std::min(open_->range.end, last + 1);
    submitted_.push_back(*std::exchange(open_, {}));
}

void ResortedSeconds::collect(gpu::IntervalSums& sums, daemon::SecondsFile* file) {
    if (submitted_.empty()) return;
    RecordedSeconds::Second oldest = std::move(submitted_.front());
    submitted_.pop_front();
    const auto second = meter_.measure(oldest.range, sums, std::move(oldest.report));
    if (file != nullptr) file->append(*second);
}

}  // namespace petacq::petlm

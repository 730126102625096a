#include "daemon/acquisition/undecided_arrivals.hpp"

#include "daemon/tracking/saturate.hpp"

namespace petacq::daemon {

void UndecidedArrivals::add(std::int64_t arrival_ns, std::uint64_t newest_time) {
    if (count_ == capacity || (latest_ns_ && arrival_ns - *latest_ns_ < apart_ns)) return;
    latest_ns_ = arrival_ns;
    waiting_[count_++] = {arrival_ns, newest_time};
}

std::span<const std::int64_t> UndecidedArrivals::take_decided(std::uint64_t watermark) {
    const std::uint64_t decided_below = subtract_or_zero(watermark, reach_);
    std::size_t decided = 0;
    for (std::size_t i = 0; i < count_;) {
        if (waiting_[i].newest_time < decided_below) {
            decided_[decided++] = waiting_[i].ns;
            waiting_[i] = waiting_[--count_];
        } else {
            ++i;
        }
    }
    return std::span(decided_).first(decided);
}

}  // namespace petacq::daemon

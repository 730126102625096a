#include "daemon/seconds/meter.hpp"

#include <utility>

#include "gpu/randoms/window_load.hpp"

namespace petacq::daemon {

std::shared_ptr<const Second> SecondsMeter::measure(gpu::TickRange range, gpu::IntervalSums& sums,
                                                    BoardReport report) {
    auto second = std::make_shared<Second>();
    static_cast<BoardReport&>(*second) = std::move(report);
    second->range = range;
    second->sums = std::exchange(sums, {});
    complete(*second);
    return second;
}

void SecondsMeter::complete(Second& second) {
    const std::uint64_t ticks = second.range.ticks();
    second.length_s = static_cast<double>(ticks) / static_cast<double>(ticks_per_s_);
    if (rules_.search) {
        estimator_.estimate(second.sums, ticks, second.randoms);
        second.load = gpu::window_load(rules_, second.sums.counts, ticks);
        second.pile_up = estimator_.pile_up();
        second.delayeds_weight = estimator_.delayeds_weight();
        second.randoms_uncertain = estimator_.uncertain();
    } else {
        second.randoms.total = Second::unknown;
        second.load = Second::unknown;
        second.pile_up = Second::unknown;
    }
    total_.add(second);
}

}  // namespace petacq::daemon

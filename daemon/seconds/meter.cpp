#include "daemon/seconds/meter.hpp"

#include <utility>

#include "gpu/window_load.hpp"

namespace petacq::daemon {

std::shared_ptr<const Second> SecondsMeter::measure(gpu::TickRange range, gpu::IntervalSums& sums,
                                                    BoardReport report) {
    auto second = std::make_shared<Second>();
    static_cast<BoardReport&>(*second) = std::move(report);
    second->range = range;
    second->length_s = static_cast<double>(range.ticks()) / static_cast<double>(ticks_per_s_);
    second->sums = std::exchange(sums, {});
    if (rules_.search) {
        estimator_.estimate(second->sums, range.ticks(), second->randoms);
        second->load = gpu::window_load(rules_, second->sums.counts, range.ticks());
        second->pile_up = gpu::pile_up_factor(rules_, second->load);
        second->delayeds_weight = estimator_.delayeds_weight();
    } else {
        second->randoms.total = Second::unknown;
        second->load = Second::unknown;
        second->pile_up = Second::unknown;
    }
    total_.add(*second);
    latest_ = second;
    return second;
}

}  // namespace petacq::daemon

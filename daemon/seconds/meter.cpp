#include "daemon/seconds/meter.hpp"

#include <utility>

#include "gpu/window_load.hpp"

namespace petacq::daemon {

void SecondsTotal::add(const Second& second) {
    length_s += second.length_s;
    prompts += second.sums.counts.prompts;
    randoms += second.randoms.total;
    weighted_delayeds += second.delayeds_weight * static_cast<double>(second.sums.counts.delayeds);
}

SecondsTotal operator-(SecondsTotal a, const SecondsTotal& b) {
    a.length_s -= b.length_s;
    a.prompts -= b.prompts;
    a.randoms -= b.randoms;
    a.weighted_delayeds -= b.weighted_delayeds;
    return a;
}

std::shared_ptr<const Second> SecondsMeter::measure(gpu::TickRange range, gpu::IntervalSums& sums) {
    auto second = std::make_shared<Second>();
    second->range = range;
    second->length_s = static_cast<double>(range.ticks()) / static_cast<double>(ticks_per_s_);
    second->sums = std::exchange(sums, {});
    estimator_.estimate(second->sums, range.ticks(), second->randoms);
    second->load = gpu::window_load(rules_, second->sums.counts, range.ticks());
    second->pile_up = gpu::pile_up_factor(rules_, second->load);
    second->delayeds_weight = estimator_.delayeds_weight();
    total_.add(*second);
    latest_ = second;
    return second;
}

}  // namespace petacq::daemon

#include "daemon/seconds/second.hpp"

namespace petacq::daemon {

BoardReport BoardReport::none(const config::Geometry& geometry) {
    BoardReport report;
    report.temperature_C.assign(geometry.bdm_count, unknown);
    report.dead_time.assign(geometry.bdm_count, unknown);
    report.live.assign(geometry.bdm_count, unknown);
    return report;
}

Second Second::none(const config::Geometry& geometry) {
    Second second;
    static_cast<BoardReport&>(second) = BoardReport::none(geometry);
    second.sums = gpu::IntervalSums::none(geometry);
    return second;
}

void SecondsTotal::add(const Second& second) {
    length_s += second.length_s;
    singles += second.sums.counts.decided;
    randoms += second.randoms.total;
    delayeds += second.sums.counts.delayeds;
    weighted_delayeds += second.delayeds_weight * static_cast<double>(second.sums.counts.delayeds);
}

SecondsTotal operator-(SecondsTotal a, const SecondsTotal& b) {
    a.length_s -= b.length_s;
    a.singles -= b.singles;
    a.randoms -= b.randoms;
    a.delayeds -= b.delayeds;
    a.weighted_delayeds -= b.weighted_delayeds;
    return a;
}

}  // namespace petacq::daemon

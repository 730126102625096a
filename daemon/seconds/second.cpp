#include "daemon/seconds/second.hpp"

#include <nlohmann/json.hpp>

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
    if (second.randoms_uncertain) uncertain_s += second.length_s;
}

SecondsTotal operator-(SecondsTotal a, const SecondsTotal& b) {
    a.length_s -= b.length_s;
    a.singles -= b.singles;
    a.randoms -= b.randoms;
    a.delayeds -= b.delayeds;
    a.weighted_delayeds -= b.weighted_delayeds;
    a.uncertain_s -= b.uncertain_s;
    return a;
}

nlohmann::json expected_randoms(const SecondsTotal& total, double data_s, bool delayeds) {
    return {{"pairs_per_s", total.randoms / data_s},
            {"pairs", total.randoms},
            {"data_s", data_s},
            {"uncertain_s", total.uncertain_s},
            {"from_delayeds", delayeds ? nlohmann::json(total.weighted_delayeds) : nlohmann::json()}};
}

}  // namespace petacq::daemon

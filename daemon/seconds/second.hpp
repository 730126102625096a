// What the detector and the pipeline did in one second of detector time: the input of corrections, of the
// monitoring of the detector, and of plots over time.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "gpu/interval_sums.hpp"
#include "gpu/randoms/randoms.hpp"
#include "gpu/second_cuts.hpp"

namespace petacq::daemon {

/// Figures of a second that come from the datagrams. The singles do not contain them.
struct BoardReport {
    static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

    double lost = unknown;              ///< datagrams lost
    std::uint64_t late = 0;             ///< frames that came late
    std::vector<double> temperature_C;  ///< [bdm] mean; NaN: unknown
    std::vector<double> dead_time;      ///< [bdm] ticks in which the module was blind; NaN: unknown
    /// [bdm] share of the second for which the data of its boards arrived; NaN: nobody has heard of the
    /// module so far (LiveSums says what follows).
    std::vector<double> live;

    /// Nothing is known.
    static BoardReport none(const config::Geometry& geometry);
};

/// Seconds begin at multiples of a second. One in which a segment ends or begins is divided there.
struct Second : BoardReport {
    gpu::TickRange range;
    double length_s = 0;     ///< of the range
    gpu::IntervalSums sums;  ///< over the groups whose opener lies in it
    /// Random pairs to be expected among its prompts. `total` and `load` are NaN if no coincidences are
    /// looked for.
    gpu::ExpectedRandoms randoms;
    double load = 0;  ///< annihilations in a window besides that of the opener (gpu/randoms/window_load.hpp)
    double pile_up = 1;              ///< true pairs without losses to multiples, for each found; NaN: unknown
    double delayeds_weight = 0;      ///< random prompts for each delayed; 0: no delayeds
    bool randoms_uncertain = false;  ///< gpu::RandomsEstimator::uncertain()

    /// A second without anything known about it.
    static Second none(const config::Geometry& geometry);
};

/// Sums over seconds. A difference of two states describes the time between them.
struct SecondsTotal {
    double length_s = 0;
    std::uint64_t singles = 0;     ///< decided
    double randoms = 0;            ///< expected among the prompts; NaN: unknown
    std::uint64_t delayeds = 0;    ///< as found
    double weighted_delayeds = 0;  ///< the randoms from these
    double uncertain_s = 0;        ///< part of length_s in which the randoms are uncertain

    void add(const Second& second);
    friend SecondsTotal operator-(SecondsTotal a, const SecondsTotal& b);
};

/// `expected_randoms` of run.json. `data_s`: time with data, above 0. `delayeds`: whether there are any.
nlohmann::json expected_randoms(const SecondsTotal& total, double data_s, bool delayeds);

}  // namespace petacq::daemon

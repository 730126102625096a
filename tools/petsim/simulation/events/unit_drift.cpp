#include "tools/petsim/simulation/events/unit_drift.hpp"

#include <algorithm>
#include <cmath>

namespace petacq::sim {

namespace {

constexpr double reference_c = 25;

}  // namespace

UnitDrift::UnitDrift(const Options& options, const config::Scanner& scanner)
    : tick_s_(scanner.tick_ps * 1e-12),
      du_count_(scanner.geometry.du_count),
      gain_steps_(options.faults.gain_steps),
      temperatures_(options.seed, options.physics.temperature_c, scanner.geometry, options.start_s,
                    options.faults.temperature_steps),
      clock_drift_(options.physics.clock_drift_ps_per_c / scanner.tick_ps),
      gain_drift_(options.physics.gain_drift_percent_per_c),
      drifts_(!gain_steps_.none() || clock_drift_ != 0 || gain_drift_ != 0) {}

double UnitDrift::furthest_ticks() const {
    return std::abs(clock_drift_) * temperatures_.furthest_from(reference_c);
}

Drift UnitDrift::find(std::uint32_t unit, const ChunkDraft& draft, double ticks) const {
    const auto time = static_cast<double>(draft.start) + std::max(ticks, 0.0);
    const double at_s = (time - static_cast<double>(draft.begin)) * tick_s_;
    Drift out;
    out.gain = gain_steps_.factor(unit / du_count_, at_s);
    if (out.gain != 1) out.history = history_gain_step;
    const double warmer = temperatures_.celsius(unit, std::floor(time * tick_s_)) - reference_c;
    out.ticks = clock_drift_ * warmer;
    out.gain *= std::max(0.0, 1 + gain_drift_ / 100 * warmer);
    return out;
}

}  // namespace petacq::sim

#include "tools/petsim/simulation/base/movement.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tools/petsim/random/random.hpp"

namespace petacq::sim {

namespace {

constexpr double max_sigmas = 3;
constexpr double shortest_cycle = 0.1;  // of the mean period

}  // namespace

double displacement_mm(const Motion& motion, double phase) {
    switch (motion.shape) {
        case MotionShape::triangle:
            return motion.amplitude_mm * (1 - std::abs(2 * phase - 1));
        case MotionShape::breath:
            return motion.amplitude_mm * std::pow(std::sin(std::numbers::pi * phase), 6);
        default:
            return motion.amplitude_mm * (1 - std::cos(2 * std::numbers::pi * phase)) / 2;
    }
}

Movement::Movement(const Options& options, const config::Scanner& scanner)
    : bed_step_mm_(options.bed.step_mm),
      bed_interval_(options.bed.interval_s * 1e12 / scanner.tick_ps),
      turn_per_tick_(2 * std::numbers::pi * options.turning.turns_per_minute / 60 * scanner.tick_ps * 1e-12),
      turn_step_(options.turning.step_deg * std::numbers::pi / 180),
      turn_interval_(options.turning.interval_s * 1e12 / scanner.tick_ps),
      length_(options.duration_s * 1e12 / scanner.tick_ps) {
    const double period = options.cycle.period_s * 1e12 / scanner.tick_ps;
    if (period <= 0) return;
    Random random(options.seed, Purpose::cycle, 0);
    double start = 0;
    cycles_.push_back(start);
    while (start < length_) {
        const double sigmas = std::clamp(random.normal(), -max_sigmas, max_sigmas);
        start += period * std::max(1 + options.cycle.spread * sigmas, shortest_cycle);
        cycles_.push_back(start);
    }
}

double Movement::phase(double ticks) const {
    // Hits may begin a little before the first cycle and end a little after the last one.
    const auto next = std::upper_bound(cycles_.begin() + 1, cycles_.end() - 1, ticks);
    const double start = *(next - 1);
    return std::clamp((ticks - start) / (*next - start), 0.0, 1.0);
}

double Movement::bed_mm(double ticks) const {
    return bed_interval_ > 0 ? bed_step_mm_ * std::floor(ticks / bed_interval_) : 0.0;
}

double Movement::scanner_angle(double ticks) const {
    return turn_interval_ > 0 ? turn_step_ * std::floor(ticks / turn_interval_) : turn_per_tick_ * ticks;
}

Vector3 Movement::shift(const Motion& motion, double ticks) const {
    Vector3 by{0, 0, bed_mm(ticks)};
    if (motion.amplitude_mm != 0 && cycles_.size() > 1)
        by[motion.axis] += displacement_mm(motion, phase(ticks));
    return by;
}

Movement::Range Movement::axial_range(const Motion& motion) const {
    const double bed = bed_mm(length_);
    const double away = motion.axis == 2 ? motion.amplitude_mm : 0;
    return {std::min(bed, 0.0) + std::min(away, 0.0), std::max(bed, 0.0) + std::max(away, 0.0)};
}

}  // namespace petacq::sim

// Where the sources and the scanner are at a time: each source follows the cycle, all lie on the bed, and the
// scanner may turn about them.
#pragma once

#include <cstdint>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petsim/simulation/base/options.hpp"

namespace petacq::sim {

/// Distance from its place at a phase of the cycle, 0 to 1; mm along the axis of the motion. "sine" is
/// A (1 - cos 2 pi phase) / 2, "triangle" goes there and back at an even speed, and "breath" is
/// A sin^6 (pi phase), which rests near its place.
double displacement_mm(const Motion& motion, double phase);

/// Times are ticks since decays begin.
class Movement {
  public:
    /// The options must have passed check().
    Movement(const Options& options, const config::Scanner& scanner);

    /// The starts of all cycles that begin in the simulation, and the start of the one after; empty without
    /// a cycle. Each lasts at least a tenth of the mean period.
    [[nodiscard]] const std::vector<double>& cycles() const { return cycles_; }
    /// The time at which cycle `number` has that phase.
    [[nodiscard]] double time_at(std::size_t number, double phase) const {
        return cycles_[number] + phase * (cycles_[number + 1] - cycles_[number]);
    }
    /// Ticks from one step of the bed to the next; 0: it rests.
    [[nodiscard]] double bed_interval() const { return bed_interval_; }
    [[nodiscard]] double bed_mm(double ticks) const;

    /// The angle of the scanner, radians from +x to +y, of any number of turns; 0 at the start.
    [[nodiscard]] double scanner_angle(double ticks) const;
    /// Ticks from one step of the scanner to the next; 0: it stands still or turns evenly.
    [[nodiscard]] double turn_interval() const { return turn_interval_; }
    [[nodiscard]] bool turns() const { return turn_step_ != 0 || turn_per_tick_ != 0; }

    /// Added to every point of a source.
    [[nodiscard]] Vector3 shift(const Motion& motion, double ticks) const;
    /// The smallest and the largest z that shift() can give.
    struct Range {
        double low;
        double high;
    };
    [[nodiscard]] Range axial_range(const Motion& motion) const;

  private:
    [[nodiscard]] double phase(double ticks) const;

    std::vector<double> cycles_;
    double bed_step_mm_;
    double bed_interval_;
    double turn_per_tick_;  ///< radians
    double turn_step_;      ///< radians
    double turn_interval_;
    double length_;  ///< of the simulation
};

}  // namespace petacq::sim

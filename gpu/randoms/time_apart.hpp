// How far apart the two singles of an annihilation are in time. Prompts tell it, once the randoms among them
// are taken away; but the number of randoms depends on it, too, since it says how many windows separate the
// two singles.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/interval_sums.hpp"
#include "gpu/rules/coincidence_rules.hpp"

namespace petacq::gpu {

/// The mean |dt| of the trues, in ticks. `abs_dt_of_randoms`: the sum over the randoms.
inline double mean_abs_dt(const IntervalSums& sums, const CoincidenceRules& rules, double randoms,
                          double abs_dt_of_randoms) {
    double abs_dt = 0;  // of both ends
    for (const PromptEnds& module : sums.modules)
        abs_dt += static_cast<double>(module.abs_dt);
    const double trues = static_cast<double>(sums.counts.prompts) - randoms;
    if (trues <= 0) return 0;
    return std::clamp((abs_dt / 2 - abs_dt_of_randoms) / trues, 0.0, static_cast<double>(rules.window));
}

/// Solves x = f(x) by the secant through the last two values of f: with many randoms, f falls so steeply that
/// putting in its own values would swing.
class FixedPoint {
  public:
    [[nodiscard]] double x() const { return x_; }
    /// `f`: f(x()).
    void next(double f) {
        const double slope = x_ != before_ ? std::clamp((f - f_before_) / (x_ - before_), -9.0, 0.5) : 0.0;
        before_ = x_;
        f_before_ = f;
        x_ += (f - x_) / (1 - slope);
    }

  private:
    double x_ = 0;
    double before_ = 0;
    double f_before_ = 0;
};

}  // namespace petacq::gpu

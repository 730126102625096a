// Fewer steps to the solution of a fixed-point equation.
#pragma once

#include <Eigen/Dense>

namespace petacq::estimate {

/// Anderson's mixing (J. ACM 12 (1965) 547; the form of Walker and Ni, SIAM J. Numer. Anal. 49 (2011) 1715):
/// of the latest steps the combination whose change is least. A pattern that each step lessens by a few
/// percent is gone after a few steps. Not thread-safe.
class AndersonMixing {
  public:
    /// Moves x to the next point. `change`: what the plain step would add to x. `weight`: of each value when
    /// changes are compared, at least 0. If a value would move by more than max_move, the plain step is taken
    /// instead: for an equation without a solution the mixed step may lead anywhere.
    void advance(Eigen::ArrayXd& x, const Eigen::ArrayXd& change, const Eigen::ArrayXd& weight,
                 double max_move);

  private:
    static constexpr Eigen::Index depth = 10;

    Eigen::ArrayXd last_x_;
    Eigen::ArrayXd last_change_;
    Eigen::MatrixXd x_differences_;       // [value][step]
    Eigen::MatrixXd change_differences_;  // [value][step]
    Eigen::Index steps_ = 0;
};

}  // namespace petacq::estimate

#include "tools/petcal/estimate/pairs/anderson_mixing.hpp"

#include <algorithm>

namespace petacq::estimate {

void AndersonMixing::advance(Eigen::ArrayXd& x, const Eigen::ArrayXd& change, const Eigen::ArrayXd& weight,
                             double max_move) {
    if (steps_ == 0) {
        x_differences_.resize(x.size(), depth);
        change_differences_.resize(x.size(), depth);
    } else {
        const Eigen::Index column = (steps_ - 1) % depth;
        x_differences_.col(column) = x - last_x_;
        change_differences_.col(column) = change - last_change_;
    }
    last_x_ = x;
    last_change_ = change;
    x += change;
    const Eigen::Index known = std::min(steps_, depth);
    ++steps_;
    if (known == 0) return;
    const Eigen::VectorXd root = weight.sqrt();
    const Eigen::MatrixXd weighted = root.asDiagonal() * change_differences_.leftCols(known);
    const Eigen::VectorXd parts =
        weighted.completeOrthogonalDecomposition().solve((root.array() * change).matrix());
    const Eigen::ArrayXd moved =
        change - ((x_differences_.leftCols(known) + change_differences_.leftCols(known)) * parts).array();
    if (moved.abs().maxCoeff() <= max_move) x = last_x_ + moved;
}

}  // namespace petacq::estimate

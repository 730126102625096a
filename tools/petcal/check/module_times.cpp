#include "tools/petcal/check/module_times.hpp"

#include <Eigen/Dense>
#include <limits>
#include <stdexcept>

namespace petacq::petcal {

ModuleTimes module_times(std::span<const double> pairs, std::span<const double> differences) {
    const std::size_t n = differences.size();
    if (pairs.size() != n * n) throw std::invalid_argument("module_times: pairs of other modules");
    ModuleTimes out{std::vector<double>(n), std::vector<double>(n, std::numeric_limits<double>::infinity())};
    std::vector<std::size_t> joined;
    for (std::size_t a = 0; a < n; ++a) {
        double sum = 0;
        for (std::size_t b = 0; b < n; ++b)
            if (b != a) sum += pairs[a * n + b];
        if (sum > 0) joined.push_back(a);
    }
    const auto size = static_cast<Eigen::Index>(joined.size());
    if (size == 0) return out;
    Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(size, size);
    Eigen::VectorXd sums(size);
    for (Eigen::Index i = 0; i < size; ++i) {
        const std::size_t a = joined[static_cast<std::size_t>(i)];
        sums(i) = -differences[a];
        for (Eigen::Index j = 0; j < size; ++j) {
            if (i == j) continue;
            const double count = pairs[a * n + joined[static_cast<std::size_t>(j)]];
            matrix(i, i) += count;
            matrix(i, j) = -count;
        }
    }
    // Pairs say nothing about a time that is common to all: it is 0. They say as little about one that is
    // common to modules which no pair joins to the others: it becomes very uncertain.
    const double scale = matrix.diagonal().mean();
    const double common = scale / static_cast<double>(size);
    matrix.array() += common;
    matrix.diagonal().array() += 1e-9 * scale;
    const Eigen::MatrixXd inverse = matrix.ldlt().solve(Eigen::MatrixXd::Identity(size, size));
    const Eigen::VectorXd times = inverse * sums;
    for (Eigen::Index i = 0; i < size; ++i) {
        const std::size_t a = joined[static_cast<std::size_t>(i)];
        out.times[a] = times(i);
        out.variance[a] = inverse(i, i) - 1 / (scale * static_cast<double>(size));
    }
    return out;
}

}  // namespace petacq::petcal

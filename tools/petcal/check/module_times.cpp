#include "tools/petcal/check/module_times.hpp"

#include <algorithm>

#include "tools/petcal/derive/linear.hpp"

namespace petacq::petcal {

std::vector<double> module_times(std::span<const double> pairs, std::span<const double> differences) {
    const std::size_t n = differences.size();
    std::vector<double> matrix(n * n);
    std::vector<double> times(n);
    double most = 0;
    for (std::size_t a = 0; a < n; ++a) {
        times[a] = -differences[a];
        for (std::size_t b = 0; b < n; ++b) {
            if (a == b) continue;
            matrix[a * n + a] += pairs[a * n + b];
            matrix[a * n + b] = -pairs[a * n + b];
        }
        most = std::max(most, matrix[a * n + a]);
    }
    for (std::size_t a = 0; a < n; ++a) {
        if (matrix[a * n + a] <= 0) times[a] = 0;
        // Pairs say nothing about a time that is common to all: the one with mean 0 is taken.
        matrix[a * n + a] += 1e-9 * most;
    }
    if (!solve(std::move(matrix), times)) times.assign(n, 0);
    return times;
}

}  // namespace petacq::petcal

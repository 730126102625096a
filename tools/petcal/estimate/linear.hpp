// Small systems of linear equations: the normal equations of fits with few parameters.
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace petacq::petcal {

/// Solves a x = b by elimination with pivots; `a` is n by n, row by row. False when `a` is singular, or not
/// finite. `b` becomes x.
inline bool solve(std::vector<double> a, std::vector<double>& b) {
    const std::size_t n = b.size();
    for (std::size_t column = 0; column < n; ++column) {
        std::size_t pivot = column;
        for (std::size_t row = column + 1; row < n; ++row)
            if (std::abs(a[row * n + column]) > std::abs(a[pivot * n + column])) pivot = row;
        if (!(std::abs(a[pivot * n + column]) > 1e-300)) return false;
        for (std::size_t k = 0; k < n && pivot != column; ++k)
            std::swap(a[pivot * n + k], a[column * n + k]);
        std::swap(b[pivot], b[column]);
        for (std::size_t row = column + 1; row < n; ++row) {
            const double factor = a[row * n + column] / a[column * n + column];
            for (std::size_t k = column; k < n; ++k)
                a[row * n + k] -= factor * a[column * n + k];
            b[row] -= factor * b[column];
        }
    }
    for (std::size_t row = n; row-- > 0;) {
        for (std::size_t k = row + 1; k < n; ++k)
            b[row] -= a[row * n + k] * b[k];
        b[row] /= a[row * n + row];
        if (!std::isfinite(b[row])) return false;
    }
    return true;
}

}  // namespace petacq::petcal

#pragma once

#include <algorithm>
#include <cmath>

namespace petacq::config {

/// Mean and spread of numbers that are added one by one; 0 for none.
struct Moments {
    double n = 0;
    double sum = 0;
    double squares = 0;

    void add(double value) {
        n += 1;
        sum += value;
        squares += value * value;
    }
    [[nodiscard]] double mean() const { return n > 0 ? sum / n : 0; }
    /// The standard deviation.
    [[nodiscard]] double spread() const {
        return n > 0 ? std::sqrt(std::max(0.0, squares / n - mean() * mean())) : 0;
    }
};

}  // namespace petacq::config

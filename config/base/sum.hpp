#pragma once

#include <numeric>
#include <vector>

namespace petacq::config {

inline double sum_of(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace petacq::config

#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace petacq::derive {

/// The upper one of two middle values; 0 for none.
inline double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace petacq::derive

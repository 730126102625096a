#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace petacq::config {

/// The upper one of two middle values; 0 for none.
template <class Number>
Number median(std::vector<Number> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace petacq::config

#include "tools/geometry/intervals.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace petacq::geometry {

Intervals::Intervals(const std::vector<double>& centres, const std::vector<double>& widths) {
    constexpr double most_cells = 1 << 16;
    std::vector<std::uint32_t> order(centres.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return centres[a] < centres[b]; });
    for (const std::uint32_t i : order) {
        upper_.push_back(centres[i] + widths[i] / 2);
        lower_.push_back(upper_.back() - widths[i]);
        index_.push_back(i);
    }
    cells_per_mm_ =
        std::min(2 / *std::min_element(widths.begin(), widths.end()), most_cells / (high() - low()));
    const auto cells = static_cast<std::size_t>(std::ceil((high() - low()) * cells_per_mm_)) + 1;
    first_.resize(cells);
    std::uint32_t i = 0;
    for (std::size_t c = 0; c < cells; ++c) {
        const double start = low() + static_cast<double>(c) / cells_per_mm_;
        while (i + 1 < upper_.size() && upper_[i] <= start)
            ++i;
        // One interval earlier, because the cell of a value is computed with its own rounding.
        first_[c] = i > 0 ? i - 1 : 0;
    }
}

}  // namespace petacq::geometry

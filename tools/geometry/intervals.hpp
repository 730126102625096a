// Intervals on a line: crystals side by side.
#pragma once

#include <cstdint>
#include <vector>

namespace petacq::geometry {

/// Intervals with gaps between them. A lookup takes constant time if their widths are alike.
class Intervals {
  public:
    static constexpr std::uint32_t none = UINT32_MAX;
    /// The centres, of which there is at least one, may be in any order; the intervals must not overlap.
    Intervals(const std::vector<double>& centres, const std::vector<double>& widths);
    static Intervals equal(const std::vector<double>& centres, double width) {
        return {centres, std::vector<double>(centres.size(), width)};
    }
    /// The index of the interval that contains v, in the order of the centres; none in a gap or outside.
    [[nodiscard]] std::uint32_t find(double v) const {
        const double cell = (v - low()) * cells_per_mm_;
        if (!(cell >= 0) || cell >= static_cast<double>(first_.size())) return none;
        std::uint32_t i = first_[static_cast<std::size_t>(cell)];
        while (i < upper_.size() && v >= upper_[i])
            ++i;
        return i < upper_.size() && v >= lower_[i] ? index_[i] : none;
    }
    [[nodiscard]] double low() const { return lower_.front(); }
    [[nodiscard]] double high() const { return upper_.back(); }

  private:
    double cells_per_mm_ = 0;
    std::vector<double> lower_;
    std::vector<double> upper_;
    std::vector<std::uint32_t> index_;
    std::vector<std::uint32_t> first_;  // [cell] first interval that ends beyond the cell's start
};

}  // namespace petacq::geometry

// How far pairs of one window depend on each other.
//
// Whether two singles make a good pair follows from where they lie, and one single is in several pairs of its
// window. Take two opposite singles: what is good with one of them tends not to be so with the other, as is
// its partner. pair_chances.hpp takes these pairs as independent. The factors here mend that. They are found
// in blocks, cells of a side that are taken together, since the work grows with the fourth power of their
// number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "gpu/randoms/pair_cells.hpp"
#include "gpu/randoms/pair_chances.hpp"

namespace petacq::gpu {

class WindowCorrelations {
  public:
    /// With more sides than this pairs stay independent.
    static constexpr std::uint32_t max_blocks = 48;

    WindowCorrelations(const PairCells& cells, const WindowContents& contents);

    /// Of a pair of singles in two blocks, [a * blocks + b]: the mean of the product over other pairs,
    /// divided by the product of their means.
    struct Factors {
        std::vector<double> partners;  ///< the five pairs that the partners of both make in the window
        std::vector<double> others;    ///< the five that two singles of another annihilation make
    };
    /// `factor`: of a pair that is good with probability p.
    [[nodiscard]] Factors find(const std::function<double(double)>& factor) const;
    [[nodiscard]] std::size_t place(std::uint32_t cell_a, std::uint32_t cell_b) const {
        return of_cell_[cell_a] * blocks_ + of_cell_[cell_b];
    }

  private:
    std::size_t blocks_ = 1;
    std::vector<std::size_t> of_cell_;
    std::vector<double> singles_;   ///< [block] part of the singles
    std::vector<double> partners_;  ///< [a * blocks + b] part of the partners of singles in a that lie in b
    std::vector<double> own_good_;  ///< [a * blocks + b] part of these pairs that are good
    std::vector<double> good_;      ///< [a * blocks + b] part of the pairs of singles that are good
};

}  // namespace petacq::gpu

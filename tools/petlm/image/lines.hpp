// What EM knows of each line: its prompts, and how its weight and its expected randoms are related.
#pragma once

#include <cstdint>
#include <vector>

#include "config/scanner.hpp"
#include "gpu/arithmetic.hpp"
#include "tools/petlm/image/grid.hpp"

namespace petacq::image {

/// Delayed coincidences by pair of modules. As a delayed window is as wide as that of the prompts, each
/// stands for one random among the prompts; the pairs of crystals of two modules share them evenly.
class RandomsByModules {
  public:
    RandomsByModules(const config::Geometry& geometry, const gpu::PairRule& rule);
    void add(std::uint32_t crystal_a, std::uint32_t crystal_b) {
        ++delayeds_[cell(module_of_[crystal_a], module_of_[crystal_b])];
        ++total_;
    }
    /// Randoms expected among the prompts of a pair.
    [[nodiscard]] double expected(Pair pair) const;
    [[nodiscard]] std::uint64_t total() const { return total_; }

  private:
    [[nodiscard]] std::size_t cell(std::size_t m, std::size_t n) const {
        return m < n ? m * modules_ + n : n * modules_ + m;
    }
    std::size_t modules_;
    std::vector<std::uint16_t> module_of_;  // [crystal]
    std::vector<std::uint64_t> delayeds_;   // [cell]
    std::vector<double> good_pairs_;        // [cell] of crystals, that the run accepts
    std::uint64_t total_ = 0;
};

/// Lines, in the order in which EM takes them: one subset after the other.
struct Lines {
    std::vector<Pair> pairs;
    std::vector<float> prompts;  ///< of each line
    /// Of each line: expected randoms divided by its weight, so that
    /// expected prompts = weight * (sum of lengths times voxels + additive).
    std::vector<float> additive;
    std::vector<std::size_t> subset_start;  ///< [subset], and the end

    static constexpr std::uint64_t bytes_per_line = sizeof(Pair) + 2 * sizeof(float);
};

/// Line i of `pairs` goes to subset i modulo their number. Weight: the chance
/// that the photons of a decay in a voxel fly along the line, per mm of it in the voxel,
///     face^2 * cos * cos / (2 pi * distance^2 * voxel^3),
/// with the front faces of the crystals, the angles at which the line meets them, and the distance between.
/// Then a voxel's value is its number of decays, were every photon detected that meets a crystal.
Lines make_lines(const config::Scanner& scanner, const Grid& grid, const std::vector<Pair>& pairs,
                 const std::vector<std::uint32_t>& counts, const RandomsByModules& randoms,
                 std::size_t subsets);

/// Ends of the lines: the point of each crystal at that depth behind its front face.
std::vector<Point> crystal_points(const config::Scanner& scanner, double depth_mm);

}  // namespace petacq::image

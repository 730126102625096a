// The data of each line for EM: its prompts, and its expected randoms relative to its weight.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "tools/petlm/reconstruction/corrections/line_factors.hpp"
#include "tools/petlm/reconstruction/em/pair_counts.hpp"
#include "tools/petlm/reconstruction/projector/projector.hpp"

namespace petacq::image {

/// A number of a pair of crystals.
using OfPair = std::function<double(Pair)>;

/// What EM knows of a line besides its weight and its prompts.
struct LineModel {
    OfPair background;  ///< expected among the prompts, at any time difference alike; empty: none
    OfPair factor;      ///< chance that a pair towards the two crystals is found; empty: 1
    OfPair scatter;     ///< expected as well, from along the object; empty: none
    /// Expected as well, of photons that start together at one of the places, on the line or not; empty:
    /// none.
    OfPair spurious = {};
    std::vector<config::Vector3> places = {};
};

/// Delayed coincidences by pair of modules. The pairs of crystals of two modules share them evenly. In the
/// long form the crystals of a BDM are those of a module; of more than some hundred BDMs, neighbours count
/// together. How many of their pairs are good is then known from a sample of some hundred or more.
class RandomsByModules {
  public:
    RandomsByModules(const config::Geometry& geometry, const gpu::PairRule& rule);
    void add(std::uint32_t crystal_a, std::uint32_t crystal_b) {
        ++delayeds_[cell(module_of_[crystal_a], module_of_[crystal_b])];
        ++total_;
    }
    /// Delayeds of the modules of a pair, shared among their pairs.
    [[nodiscard]] double expected(Pair pair) const;
    [[nodiscard]] std::uint64_t total() const { return total_; }

  private:
    void use_ring(const config::Geometry& geometry, const gpu::PairRule& rule);
    void use_channel_map(const config::Geometry& geometry, const gpu::PairRule& rule);
    [[nodiscard]] std::size_t cell(std::size_t m, std::size_t n) const {
        return m < n ? m * modules_ + n : n * modules_ + m;
    }
    std::size_t modules_;
    std::vector<std::uint16_t> module_of_;  // [crystal]
    std::vector<std::uint64_t> delayeds_;   // [cell]
    std::vector<double> good_pairs_;        // [cell] pairs of crystals that the run accepts
    std::uint64_t total_ = 0;
};

/// Lines in the order in which EM takes them: one subset after the other.
struct Lines {
    std::vector<Pair> pairs;
    std::vector<std::int16_t> bins;  ///< [line] of the time of flight; empty without
    std::vector<float> prompts;      ///< [line]
    /// [line] expected background divided by weight and factor, so that
    /// expected prompts = weight * factor * (sum of lengths times voxels + additive).
    std::vector<float> additive;
    std::vector<std::size_t> subset_start;  ///< [subset] first line, and the end
    TofBins tof;

    [[nodiscard]] Rows rows() const { return {pairs, bins, prompts, additive, tof}; }
    static constexpr std::uint64_t bytes_per_line = sizeof(Pair) + sizeof(std::int16_t) + 2 * sizeof(float);
};

/// What solid_angle() is multiplied by to make the weight of a line in this grid (make_lines).
double weight_scale(const corrections::LineFactors& factors, const Grid& grid);

/// The share of the scatter of a pair whose time difference is in the bin: it comes evenly from the chord of
/// the line in the object; of lines that miss the object or touch it, from half of its width around the
/// nearest place.
double share_of_scatter(const corrections::LineFactors& factors, Pair pair, const TofBins& tof,
                        std::int16_t bin);

/// The share of the spurious pairs of a pair of crystals whose time difference is in the bin: that of the
/// ways to both from places where decays are. Each place counts as both crystals see it. The mean and the
/// spread of the differences are those of the places; between, they are even.
double share_of_spurious(const corrections::LineFactors& factors, Pair pair, const TofBins& tof,
                         std::int16_t bin, const std::vector<config::Vector3>& places);

/// Line i of `counts` goes to subset i modulo the number of subsets. In a subset, lines of the same two
/// columns of crystals follow each other, and meet the same voxels while these are in the cache. The weight
/// is the probability that the photons of a decay in a voxel fly along the line, per mm of it in the voxel,
///     face^2 * cos * cos / (2 pi * distance^2 * voxel^3),
/// with the area of the front faces, the angles at which the line meets them, and the distance between them.
/// The value of a voxel is then its number of decays if every photon that meets a crystal is detected; in the
/// long form, if crystals detect the photons that they absorb (geometry::PairResponse); or with that chance
/// which the factor of the model says: it multiplies the weight. Lines with a factor of 0,
/// of dead crystals, are left out. With the time of flight, the background of a pair is shared evenly among
/// the time differences in the window, and its scatter among those from along the object, as if it came
/// evenly from the chord of the line in it; of lines that miss the object or touch it, from half of its
/// width; spurious pairs by share_of_spurious().
Lines make_lines(const corrections::LineFactors& factors, const Grid& grid, const MeasuredPairs& counts,
                 const LineModel& model, std::size_t subsets);

}  // namespace petacq::image

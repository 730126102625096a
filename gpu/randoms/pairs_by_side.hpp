// Pairs of modules (BDMs) as pairs of sides.
//
// The pipeline counts pairs by the modules of their singles. Boards may be cabled so that one module reads
// crystals of several sides. How many pairs of two modules belong to each pair of their sides is then
// estimated: pairs are taken as a product of a factor of either *piece*, the crystals of one module on one
// side, and of how far from the axis the line between the two sides passes. The factors are fitted to what is
// known: the pairs of any two modules and the ends of pairs in each piece, by expectation maximisation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/randoms/pair_cells.hpp"

namespace petacq::gpu {

/// How much of a sector of modules, by crystals, lies on a side.
struct ShareOfSide {
    std::uint32_t side;
    double share;
};

/// The pairs of one kind, good or refused, as far as they were counted or estimated.
struct PairsOfSectors {
    std::span<const std::uint32_t> counts;  ///< [a * sectors + b]
    bool good = true;
    /// [a * sides + b] the randoms among them, in both orders also within a side.
    std::vector<double> randoms;
    std::vector<double> random_ends;  ///< [piece] of the randoms, to any scale
    std::vector<double> ends;  ///< [piece] of the true ones, to any scale; noise may make some negative
};

/// Used by one thread at a time. The same calls give the same result, bit for bit.
class PairsBySide {
  public:
    /// `sector_of`: [crystal].
    PairsBySide(const PairCells& cells, std::span<const std::uint16_t> sector_of, std::size_t sectors);

    /// The pieces of a sector are consecutive.
    [[nodiscard]] const std::vector<std::vector<ShareOfSide>>& of_sectors() const { return sides_of_; }
    [[nodiscard]] std::uint32_t piece_of(std::uint32_t crystal) const { return piece_of_[crystal]; }
    [[nodiscard]] std::size_t pieces() const { return side_of_.size(); }

    /// [a * sides + b] of the pairs of crystals
    [[nodiscard]] const std::vector<double>& good_parts() const { return good_parts_; }

    /// Whether the pairs of so few modules, some of which read crystals of several sides, say hardly
    /// anything about those of sides.
    [[nodiscard]] bool lacks_modules() const { return !whole_ && modules_ < 4; }

    /// Without randoms and ends.
    [[nodiscard]] PairsOfSectors none(std::span<const std::uint32_t> counts, bool good) const {
        return {counts, good, {}, std::vector<double>(pieces()), std::vector<double>(pieces())};
    }
    /// The result of one spread, where the next one starts.
    struct Fit {
        std::vector<double> of_piece;
        std::vector<double> of_distance;
    };
    /// [a * sides + b], in both orders; the sum is twice that of the counts.
    [[nodiscard]] std::vector<double> spread(PairsOfSectors known, Fit& fit) const;

  private:
    /// When each sector lies on one side.
    [[nodiscard]] std::vector<double> add(const PairsOfSectors& known) const;
    [[nodiscard]] Fit first_fit(const PairsOfSectors& known) const;
    /// [piece] of the randoms of its side, the part that lies in it.
    [[nodiscard]] std::vector<double> shares_of_randoms(const PairsOfSectors& known) const;

    std::shared_ptr<const PairSides> sides_;
    std::vector<std::vector<ShareOfSide>> sides_of_;  ///< [sector]
    std::vector<std::uint32_t> first_;                ///< [sector] piece
    std::vector<std::uint32_t> side_of_;              ///< [piece]
    std::vector<std::uint32_t> piece_of_;             ///< [crystal]
    std::vector<double> good_parts_;                  ///< [a * sides + b] of the pairs of crystals
    bool whole_ = true;                               ///< each sector lies on one side
    std::size_t modules_ = 0;                         ///< sectors that have crystals
};

}  // namespace petacq::gpu

// Where a single lies, as far as the chance of its pairs depends on it: on which side of the scanner; under
// policies that ask which pairs are good and a condition along the axis or a field of view, also in which
// zone along the axis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "gpu/randoms/pair_bins.hpp"
#include "gpu/rules/coincidence_rules.hpp"
#include "gpu/rules/pair_rule.hpp"

namespace petacq::gpu {

/// Whether it matters which of the other pairs of a window are good.
inline bool asks_for_good(MultiplesPolicy policy) {
    switch (policy) {
        case MultiplesPolicy::take_winner_of_goods:
        case MultiplesPolicy::take_if_only_one_good:
        case MultiplesPolicy::take_winner_if_all_are_goods:
            return true;
        case MultiplesPolicy::remove_multiples:
        case MultiplesPolicy::take_all_goods:
        case MultiplesPolicy::take_winner_if_is_good:
            break;
    }
    return false;
}

/// A cell is a side within a zone of places along the axis: side * zones + zone. A side of a ring is a module
/// around the ring, and its places along the axis are the rings.
struct PairCells {
    /// The work grows with the third power of the number of cells; docs/design/randoms.md has times.
    static constexpr std::uint32_t max_cells = 200;
    static constexpr std::uint32_t max_zones = 8;

    PairRule rule;
    std::uint32_t sides = 1;
    std::uint32_t zones = 1;  ///< of about equally many places; at most as many as there are
    /// Whether some pairs of sides that can join are not good, and the policy asks which.
    bool partners_refused = false;
    /// Whether a ring has too few zones to tell which. It has more than 66 modules around it.
    bool lacks_zones = false;
    std::shared_ptr<const PairSides> of_sides;
    std::shared_ptr<const PairBins> bins;
    std::shared_ptr<const config::PairGeometry> pairs;  ///< of the long form: the rule is a view of it
    // Only for policies that ask.
    std::vector<double> good_parts;  ///< [cell a * count + cell b] the good part of the pairs of two cells
    std::vector<double> near_zones;  ///< [zone a * zones + zone b] the same of zones, where sides can join

    static PairCells of(const config::Geometry& geometry, const CoincidenceRules& rules);

    [[nodiscard]] std::uint32_t count() const { return sides * zones; }
    [[nodiscard]] std::uint32_t side_of(std::uint32_t cell) const { return cell / zones; }
    [[nodiscard]] std::uint32_t zone_of(std::uint32_t cell) const { return cell % zones; }
    [[nodiscard]] std::uint32_t of_crystal(std::uint32_t crystal) const {
        return bins->cell_of_crystal(crystal);
    }
    /// Whether the cell has crystals: a side of the long form may be shorter than the scanner.
    [[nodiscard]] bool occupied(std::uint32_t cell) const {
        return bins->first_bin(cell + 1) > bins->first_bin(cell);
    }
    [[nodiscard]] bool has_empty() const { return empty_; }
    /// Whether a single of side a and one of side b may make a good pair.
    [[nodiscard]] bool can_join(std::uint32_t side_a, std::uint32_t side_b) const {
        return of_sides->can_join[std::size_t{side_a} * sides + side_b] != 0;
    }
    /// Whether they lie at least a third of the way around from each other.
    [[nodiscard]] bool opposite(std::uint32_t side_a, std::uint32_t side_b) const {
        return of_sides->opposite[std::size_t{side_a} * sides + side_b] != 0;
    }

  private:
    void find_good_parts();

    bool empty_ = false;  ///< a cell is not occupied
};

}  // namespace petacq::gpu

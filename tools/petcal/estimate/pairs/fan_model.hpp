// The expected coincidences of a cylinder along the axis, for given efficiencies and geometric factors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "config/depth_of_interaction.hpp"
#include "config/scanner.hpp"

namespace petacq::estimate {

/// A scan of a uniform cylinder, and which pairs the daemon took as good.
struct CylinderScan {
    config::Vector3 centre_mm{};
    double radius_mm = 0;
    double length_mm = 0;
    double attenuation_per_mm = 0;  ///< of the cylinder; water at 511 keV: 0.0096
    config::DepthOfInteraction depth = config::DepthOfInteraction::fixed(0);  ///< of the mean detection
    /// Lines count where they come nearer to the axis of the cylinder than its radius less this, and the
    /// place where they do is so far from its ends.
    double edge_mm = 0;
    std::uint32_t min_module_difference = 0;  ///< circular, around the ring; 0: no condition
    std::uint32_t max_ring_difference = UINT32_MAX;
};

/// Of a pair of crystals, shaped as in normalisation::Normalisation; mean about 1.
struct GeometricFactors {
    std::vector<double> transaxial;
    std::vector<double> axial;

    static GeometricFactors even(const config::Geometry& geometry);
};

/// Sums over pairs of crystals whose lines count. Where both crystals have a place, both orders hold the sum.
struct PairSums {
    std::vector<double> fans;        ///< [crystal] over its partners
    std::vector<double> transaxial;  ///< [normalisation::transaxial_class]
    std::vector<double> axial;       ///< [ring of a][ring of b]
    std::vector<double> units;       ///< [unit of a][unit of b]; FanModel::unit_of
};

/// The expected number of pairs, up to a common factor, is e_i e_j transaxial axial g_ij with
///     g_ij = chord / distance^2 * cos_i * cos_j * exp(-attenuation * chord),
/// distance and angles between the centres of the front faces, as in tools/petlm/reconstruction/em/lines.hpp,
/// and the chord between the points at the mean depth. The chord is that of the mean line: over the width of
/// the faces and, with a depth, over detections spread evenly from the front to twice that depth. So lines
/// near the edge of the cylinder have the right number. Overlap and blocking of crystals are left out: that
/// is what the factors are for. For each pair of columns (crystals with the same place around the ring) the
/// part of the line in the circle is found once; all pairs of rings follow from it, so that memory does not
/// grow with the number of pairs. Thread-safe.
class FanModel {
  public:
    /// Throws config::Error when the cylinder has no volume, or no line between two crystals meets it.
    FanModel(const config::Scanner& scanner, const CylinderScan& scan);

    /// Of g_ij with the factors, times both weights; PairSums::fans times that of the partner only.
    /// `weights`: by crystal. The unit of g is arbitrary. The result depends on the number of threads only by
    /// rounding.
    [[nodiscard]] PairSums sums(std::span<const double> weights, const GeometricFactors& factors,
                                unsigned threads = 1) const;

    /// Whether the line between two crystals counts, that is g_ij > 0.
    [[nodiscard]] bool counts(std::uint32_t a, std::uint32_t b) const {
        const FanCrystal at_a{a % columns_, a / columns_};
        const FanCrystal at_b{b % columns_, b / columns_};
        return at_a.column < at_b.column ? counts(at_a, at_b) : counts(at_b, at_a);
    }
    /// Calls use(a, b) for pairs that count: all of them, or an even share of about one in `one_in`.
    template <class Use>
    void for_each_pair(std::uint32_t one_in, Use use) const;

    /// The detector unit of a crystal: block around the ring * blocks along the axis + block along the axis.
    [[nodiscard]] std::uint32_t unit_of(std::uint32_t crystal) const {
        return crystal % columns_ / columns_in_unit_ * units_along_ + crystal / columns_ / rings_in_unit_;
    }
    [[nodiscard]] std::uint32_t unit_count() const { return columns_ / columns_in_unit_ * units_along_; }
    /// Pairs of rings that each pair of columns stands for, times the pairs of columns.
    [[nodiscard]] double max_pairs() const { return static_cast<double>(pairs_.size()) * rings_ * rings_; }
    [[nodiscard]] const config::Geometry& geometry() const { return geometry_; }
    [[nodiscard]] const CylinderScan& scan() const { return scan_; }

  private:
    struct ColumnPair {
        std::uint32_t a;
        std::uint32_t b;
        std::uint32_t factor;  // index of its class
        double nearest;        // part of the way from a to b: nearest to the axis of the cylinder
        double enter;          // the same, in the circle
        double leave;
        double way;      // mm^2, of the distance across the axis between the points at depth
        double square;   // mm^2, the same between the front faces
        double cosines;  // mm^2, product of the angles' cosines times `square`
    };
    struct FanCrystal {
        std::uint32_t column;
        std::uint32_t ring;
    };
    struct Work;
    [[nodiscard]] bool counts(FanCrystal a, FanCrystal b) const {
        const std::int32_t pair = pair_of_[std::size_t{a.column} * columns_ + b.column];
        if (pair < 0 || !good_[std::size_t{a.ring} * rings_ + b.ring]) return false;
        const double z =
            z_[a.ring] + pairs_[static_cast<std::size_t>(pair)].nearest * (z_[b.ring] - z_[a.ring]);
        return z >= low_ && z <= high_;
    }
    void add_columns(const config::Scanner& scanner, const CylinderScan& scan);
    void add_rings(const config::Scanner& scanner, const CylinderScan& scan);
    void add(const ColumnPair& pair, const GeometricFactors& factors, Work& work) const;

    config::Geometry geometry_;
    CylinderScan scan_;
    std::uint32_t columns_;
    std::uint32_t rings_;
    std::uint32_t columns_in_unit_;
    std::uint32_t rings_in_unit_;
    std::uint32_t units_along_;
    double low_;  // mm; z of the line where it is nearest to the axis
    double high_;
    std::vector<ColumnPair> pairs_;
    std::vector<std::int32_t> pair_of_;  // [column of a][column of b] index into pairs_; a < b; -1: none
    std::vector<double> z_;              // [ring] mm
    // [ring of a][ring of b], b fastest
    std::vector<double> enter_;   // part of the way where the line enters the cylinder's length
    std::vector<double> leave_;   // below enter_ for pairs that are not good
    std::vector<double> square_;  // mm^2, of the distance along the axis
    std::vector<bool> good_;
};

template <class Use>
void FanModel::for_each_pair(std::uint32_t one_in, Use use) const {
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        const ColumnPair& pair = pairs_[i];
        for (std::uint32_t ring_a = 0; ring_a < rings_; ++ring_a) {
            // Begins elsewhere in each row, so that all rings have their turn.
            for (auto ring_b = static_cast<std::uint32_t>((i + ring_a) % one_in); ring_b < rings_;
                 ring_b += one_in) {
                if (!counts(FanCrystal{pair.a, ring_a}, FanCrystal{pair.b, ring_b})) continue;
                use(pair.a + ring_a * columns_, pair.b + ring_b * columns_);
            }
        }
    }
}

}  // namespace petacq::estimate

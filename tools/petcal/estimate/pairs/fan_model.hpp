// The expected coincidences of a cylinder in a ring, for given efficiencies and geometric factors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/petcal/estimate/pairs/scan_model.hpp"

namespace petacq::estimate {

/// The model of a scan with a ring. The
/// detections that the mean line stands for lie evenly over the width of the faces and, with a depth, from
/// the front to twice that depth. For each pair of columns (crystals with the same place around the ring) the
/// part of the line in the circle is found once; all pairs of rings follow from it, so that memory does not
/// grow with the number of pairs.
class FanModel : public ScanModel {
  public:
    /// Throws config::Error when the cylinder has no volume, or no line between two crystals meets it.
    FanModel(const config::Scanner& scanner, const CylinderScan& scan);

    [[nodiscard]] PairSums sums(std::span<const double> weights, const GeometricFactors& factors,
                                unsigned threads) const override;

    [[nodiscard]] bool counts(std::uint32_t a, std::uint32_t b) const override {
        const FanCrystal at_a{a % columns_, a / columns_};
        const FanCrystal at_b{b % columns_, b / columns_};
        return at_a.column < at_b.column ? counts(at_a, at_b) : counts(at_b, at_a);
    }
    void for_each_pair(std::uint32_t one_in, const UsePair& use) const override;
    [[nodiscard]] const FactorKind& transaxial() const override { return transaxial_; }
    [[nodiscard]] const FactorKind& axial() const override { return axial_; }
    [[nodiscard]] FactorEntries entries(std::uint32_t a, std::uint32_t b) const override;
    /// A detector unit: block around the ring * blocks along the axis + block along the axis.
    [[nodiscard]] std::uint32_t part_of(std::uint32_t crystal) const override {
        return crystal % columns_ / columns_in_unit_ * units_along_ + crystal / columns_ / rings_in_unit_;
    }
    [[nodiscard]] std::uint32_t part_count() const override {
        return columns_ / columns_in_unit_ * units_along_;
    }
    [[nodiscard]] double place_along(std::size_t axis, std::uint32_t crystal) const override;
    [[nodiscard]] bool has_axial_orders() const override { return true; }
    /// Pairs of rings that each pair of columns stands for, times the pairs of columns.
    [[nodiscard]] double max_pairs() const override {
        return static_cast<double>(pairs_.size()) * rings_ * rings_;
    }

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
    void add_columns(const config::Scanner& scanner);
    void add_rings(const config::Scanner& scanner);
    void add_factors();
    void add(const ColumnPair& pair, const GeometricFactors& factors, Work& work) const;

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
    FactorKind transaxial_;
    FactorKind axial_;
};

}  // namespace petacq::estimate

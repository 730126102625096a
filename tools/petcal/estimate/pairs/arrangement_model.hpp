// The expected coincidences of a cylinder in a scanner of the long form.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tools/normalisation/pair_classes.hpp"
#include "tools/petcal/estimate/pairs/scan_model.hpp"

namespace petacq::estimate {

/// The model of a scan with any arrangement of crystals. Detections spread evenly over the faces, and behind
/// them as with a ring. The lines of each crystal are found once; of scanners with more than max_lines pairs
/// an even share, so that memory is bounded: one of `share` crystals that follow each other is a partner,
/// others for each crystal. A partner has the mean weight of those for which it stands.
class ArrangementModel : public ScanModel {
  public:
    using GoodPair = std::function<bool(std::uint32_t a, std::uint32_t b)>;
    using SolidAngle = std::function<double(std::uint32_t a, std::uint32_t b)>;
    /// `good`: whether the daemon takes two crystals as a pair, in either order. `solid_angle`: the chance
    /// that the photons of a pair fly along their line and are detected, of any unit: what images take it to
    /// be, since the normalisation is relative to that. Both are called by several threads. Throws
    /// config::Error when the cylinder has no volume, or no line between two crystals meets it.
    ArrangementModel(const config::Scanner& scanner, const CylinderScan& scan, GoodPair good,
                     SolidAngle solid_angle, double max_lines = 1e8);

    [[nodiscard]] PairSums sums(std::span<const double> weights, const GeometricFactors& factors,
                                unsigned threads) const override;
    [[nodiscard]] bool counts(std::uint32_t a, std::uint32_t b) const override;
    void for_each_pair(std::uint32_t one_in, const UsePair& use) const override;
    [[nodiscard]] double max_pairs() const override;
    [[nodiscard]] const FactorKind& transaxial() const override { return transaxial_; }
    [[nodiscard]] const FactorKind& axial() const override { return axial_; }
    [[nodiscard]] FactorEntries entries(std::uint32_t a, std::uint32_t b) const override;
    /// A module; of many modules several, so that there are at most max_parts.
    [[nodiscard]] std::uint32_t part_of(std::uint32_t crystal) const override { return part_of_[crystal]; }
    [[nodiscard]] std::uint32_t part_count() const override { return parts_; }
    [[nodiscard]] double place_along(std::size_t axis, std::uint32_t crystal) const override;
    [[nodiscard]] bool has_axial_orders() const override { return false; }

    /// Absent for scanners with so many modules, or crystals in them, that no table holds their pairs: then
    /// there are no geometric factors.
    [[nodiscard]] const std::shared_ptr<const normalisation::PairClasses>& classes() const {
        return classes_;
    }
    /// Rotations and reflections that map the scanner on itself.
    [[nodiscard]] std::size_t symmetries() const { return symmetries_; }
    /// Of the partners of a crystal, one in so many is in the sums.
    [[nodiscard]] std::uint32_t share() const { return share_; }

    static constexpr std::uint32_t max_parts = 1024;

  private:
    struct Partner {
        std::uint32_t crystal;
        float expected;  ///< g, times the share
    };
    struct FaceSize {
        double y;
        double z;
    };
    struct Work;
    /// Where a line that counts passes the cylinder.
    struct Passage {
        double nearest;    ///< part of the way: nearest to the axis of the cylinder
        double off_mm;     ///< how far from that axis, on the left of the line or (below 0) on its right
        double across_mm;  ///< length of the line across the axis
    };
    [[nodiscard]] std::optional<Passage> passage(std::uint32_t a, std::uint32_t b,
                                                 const config::LineEnds& ends) const;
    [[nodiscard]] std::vector<double> mean_weights(std::span<const double> weights) const;
    [[nodiscard]] double expected(std::uint32_t a, std::uint32_t b) const;
    [[nodiscard]] double spread_across(std::uint32_t crystal, const config::Vector3& end, double x,
                                       double y) const;
    void add_factors(const config::Arrangement& arrangement);
    void find_lines(double max_lines);
    void mark_accepted();

    GoodPair good_;
    SolidAngle solid_angle_;
    std::shared_ptr<const config::Arrangement> arrangement_;
    config::LineGeometry lines_;
    std::vector<FaceSize> faces_;  // [crystal]
    std::shared_ptr<const normalisation::PairClasses> classes_;
    std::size_t symmetries_ = 0;
    std::vector<std::uint32_t> part_of_;
    std::uint32_t parts_ = 0;
    std::uint32_t share_ = 1;
    FactorKind transaxial_;
    FactorKind axial_;
    std::vector<std::size_t> first_;  // [crystal] of its partners; one more at the end
    std::vector<Partner> partners_;
    double reach_mm_ = 0;  // largest distance of a front face from z = 0
};

}  // namespace petacq::estimate

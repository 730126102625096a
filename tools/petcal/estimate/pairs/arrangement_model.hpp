// The expected coincidences of a cylinder in a scanner of the long form.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tools/geometry/pair_response.hpp"
#include "tools/normalisation/pair_classes.hpp"
#include "tools/petcal/estimate/pairs/scan_model.hpp"

namespace petacq::estimate {

/// The model of a scan with any arrangement of crystals. What absorption in the crystals, layers and modules
/// on the way makes of a pair is in geometry::PairResponse, so that efficiencies and factors hold the rest.
/// Detections spread evenly over the faces, and behind
/// them as with a ring. The lines of each crystal are found once; of scanners with more than max_lines pairs
/// an even share, so that memory is bounded: every share-th crystal is a partner, others for each crystal.
class ArrangementModel : public ScanModel {
  public:
    using GoodPair = std::function<bool(std::uint32_t a, std::uint32_t b)>;
    /// `good`: whether the daemon takes two crystals as a pair, in either order. Throws config::Error when
    /// the cylinder has no volume, or no line between two crystals meets it.
    ArrangementModel(const config::Scanner& scanner, const CylinderScan& scan, GoodPair good);

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

    static constexpr double max_lines = 1e8;
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
    [[nodiscard]] double expected(std::uint32_t a, std::uint32_t b) const;
    [[nodiscard]] double spread_across(std::uint32_t crystal, const config::Vector3& end, double x,
                                       double y) const;
    void add_factors(const config::Arrangement& arrangement);
    void find_lines();
    void mark_accepted();

    GoodPair good_;
    std::shared_ptr<const config::Arrangement> arrangement_;
    config::LineGeometry lines_;
    geometry::PairResponse response_;
    std::vector<FaceSize> faces_;  // [crystal]
    double mean_area_ = 0;
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

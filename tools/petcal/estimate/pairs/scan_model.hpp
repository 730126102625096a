// What the coincidences of a known cylinder say about pairs of crystals: the model that a normalisation is
// fitted to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "config/scanner/depth_of_interaction.hpp"
#include "config/scanner/scanner.hpp"

namespace petacq::estimate {

/// A scan of a uniform cylinder along the axis, and which pairs the daemon took as good.
struct CylinderScan {
    config::Vector3 centre_mm{};
    double radius_mm = 0;
    double length_mm = 0;
    double attenuation_per_mm = 0;  ///< of the cylinder; water at 511 keV: 0.0096
    config::DepthOfInteraction depth = config::DepthOfInteraction::fixed(0);  ///< of a ring: mean detection
    /// Lines count where they come nearer to the axis of the cylinder than its radius less this, and the
    /// place where they do is so far from its ends.
    double edge_mm = 0;
    std::uint32_t min_module_difference = 0;  ///< of a ring: circular, around it; 0: no condition
    std::uint32_t max_ring_difference = UINT32_MAX;
};

/// Of a pair of crystals, as normalisation::Normalisation; mean about 1.
struct GeometricFactors {
    std::vector<double> transaxial;
    std::vector<double> axial;

    /// Of a ring.
    static GeometricFactors even(const config::Geometry& geometry);
};

/// One kind of geometric factor: transaxial, by the columns of the crystals in their modules, or axial.
struct FactorKind {
    std::vector<std::uint32_t> same;  ///< [factor] the first of those that have the same value by design
    std::vector<std::array<std::uint32_t, 2>> places;  ///< [factor] of crystals a and b
    std::vector<bool> accepted;                        ///< [factor] whether the scan accepts pairs of it
    std::vector<std::uint32_t> place_of;               ///< [crystal] column or row: of its type of module
    std::vector<std::uint32_t> mirrored;               ///< [place] that of the other side, alike by design
};

struct FactorEntries {
    std::size_t transaxial;
    std::size_t axial;
};

/// Sums over pairs of crystals whose lines count. Where both crystals have a place, both orders hold the sum.
struct PairSums {
    std::vector<double> fans;        ///< [crystal] over its partners
    std::vector<double> transaxial;  ///< as GeometricFactors
    std::vector<double> axial;
    std::vector<double> parts;  ///< [part of a][part of b]; ScanModel::part_of
};

/// The expected number of pairs, up to a common factor, is e_i e_j transaxial axial g_ij with
///     g_ij = solid angle * chord * exp(-attenuation * chord).
/// The solid angle is that of images (tools/petlm/reconstruction/corrections/line_factors.hpp); in a ring
/// cos_i cos_j / distance^2, between the centres of the front faces. The chord is between the points at the
/// mean depth, that of the mean line over the width of the faces and the depths of detections, so that lines
/// near the edge of the cylinder have the right number. Overlap and blocking of crystals are left to the
/// factors. Thread-safe.
class ScanModel {
  public:
    virtual ~ScanModel() = default;

    /// Of g_ij with the factors, times both weights; PairSums::fans times that of the partner only.
    /// `weights`: by crystal. The unit of g is arbitrary. The result depends on the number of threads only by
    /// rounding.
    [[nodiscard]] virtual PairSums sums(std::span<const double> weights, const GeometricFactors& factors,
                                        unsigned threads) const = 0;
    /// Whether the line between two crystals counts, that is g_ij > 0.
    [[nodiscard]] virtual bool counts(std::uint32_t a, std::uint32_t b) const = 0;
    using UsePair = std::function<void(std::uint32_t a, std::uint32_t b)>;
    /// Calls use(a, b) for pairs that count: all of them, or an even share of about one in `one_in`.
    virtual void for_each_pair(std::uint32_t one_in, const UsePair& use) const = 0;
    /// About how many pairs for_each_pair(1) looks at.
    [[nodiscard]] virtual double max_pairs() const = 0;

    [[nodiscard]] virtual const FactorKind& transaxial() const = 0;
    [[nodiscard]] virtual const FactorKind& axial() const = 0;
    [[nodiscard]] virtual FactorEntries entries(std::uint32_t a, std::uint32_t b) const = 0;
    /// Parts of the scanner between which the fit is compared with the counts.
    [[nodiscard]] virtual std::uint32_t part_of(std::uint32_t crystal) const = 0;
    [[nodiscard]] virtual std::uint32_t part_count() const = 0;
    /// Of a crystal along x (axis 0), y, and z, from -1 to 1.
    [[nodiscard]] virtual double place_along(std::size_t axis, std::uint32_t crystal) const = 0;
    /// Whether the two orders of places of axial sums are two entries, as those of the parts are.
    [[nodiscard]] virtual bool has_axial_orders() const = 0;

    [[nodiscard]] const config::Geometry& geometry() const { return geometry_; }
    [[nodiscard]] const CylinderScan& scan() const { return scan_; }
    [[nodiscard]] GeometricFactors even_factors() const {
        return {std::vector<double>(transaxial().same.size(), 1),
                std::vector<double>(axial().same.size(), 1)};
    }

  protected:
    /// Throws config::Error when the cylinder has no volume.
    ScanModel(const config::Scanner& scanner, const CylinderScan& scan);

  private:
    config::Geometry geometry_;
    CylinderScan scan_;
};

/// The part of a straight line from one end to the other, 0 to 1.
struct LinePart {
    double low = 0;
    double high = 1;
};
/// The part of the way from z = a to z = b that lies between two planes; low above high if there is none.
LinePart part_between(double a, double b, double low, double high);

}  // namespace petacq::estimate

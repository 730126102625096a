// The expected coincidences of crystals that all have the same efficiency, for a cylinder along the axis.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "config/scanner.hpp"

namespace petacq::derive {

/// A scan of a uniform cylinder, and which pairs the daemon took as good.
struct CylinderScan {
    config::Vector3 centre_mm{};
    double radius_mm = 0;
    double length_mm = 0;
    double attenuation_per_mm = 0;            ///< of the cylinder; water at 511 keV: 0.0096
    double depth_mm = 0;                      ///< of the mean detection behind the front faces
    std::uint32_t min_module_difference = 0;  ///< circular, around the ring; 0: no condition
    std::uint32_t max_ring_difference = UINT32_MAX;
};

/// Line integrals between the centres of the crystals' front faces:
/// g_ij = chord / distance^2 * cos_i * cos_j * exp(-attenuation * chord), with the angles to the faces.
/// Size, overlap and blocking of crystals are left out. For each pair of columns (crystals with the same
/// place around the ring) the part of the line in the circle is found once; all pairs of rings follow from
/// it, so nothing grows with the number of pairs. Thread-safe.
class FanModel {
  public:
    /// Throws config::Error when the cylinder has no volume, or no line between two crystals meets it.
    FanModel(const config::Scanner& scanner, const CylinderScan& scan);
    /// sums[i] = sum over j of g_ij weights[j]; both by crystal number. The unit of g is arbitrary.
    void fan_sums(std::span<const double> weights, std::span<double> sums, unsigned threads = 1) const;

  private:
    struct ColumnPair {
        std::uint32_t a;
        std::uint32_t b;
        double enter;  // parts of the way from a to b, in the circle
        double leave;
        double square;   // mm^2, of the distance across the axis
        double cosines;  // mm^2, product of the angles' cosines times `square`
    };
    struct Sums;
    void add(const ColumnPair& pair, Sums& sums) const;

    std::uint32_t columns_;
    std::uint32_t rings_;
    double attenuation_;
    std::vector<ColumnPair> pairs_;
    // [ring of a][ring of b], b fastest
    std::vector<double> enter_;   // part of the way where the line enters the cylinder's length
    std::vector<double> leave_;   // below enter_ for pairs that are not good
    std::vector<double> square_;  // mm^2, of the distance along the axis
};

}  // namespace petacq::derive

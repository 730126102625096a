// How many of the photons that fly between two crystals they absorb, in a scanner whose crystals differ.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/scanner/arrangement.hpp"

namespace petacq::geometry {

using config::Vector3;

/// The response of a pair of crystals is
///     area_a area_b absorbed_a absorbed_b passed,
/// with the areas of the front faces, mm^2. A crystal of length L absorbs
///     absorbed = exp(-sum of mu_i l_i) (1 - exp(-mu L / cosine))
/// of the photons towards it: the layers in front of it, of which the line crosses l_i, have attenuated them.
/// At its sides as many enter from its neighbours as leave for them, but beside gaps between modules, where
/// more enter. Where other modules stand in the way, `passed` is exp(-sum of mu l) of their crystals. Both
/// sums are means over 2 x 2 lines, through the Gauss nodes of both faces. Where front faces absorb all
/// photons, and nobody asks how deep they go, the response is area_a area_b. Thread-safe.
class PairResponse {
  public:
    /// `deep`: whether photons fly into the crystals; else the front faces absorb them.
    PairResponse(std::shared_ptr<const config::Arrangement> arrangement, bool deep);

    /// mm^4. The order of the crystals does not matter.
    [[nodiscard]] double of(std::uint32_t a, std::uint32_t b) const;
    /// The area of the front face, mm^2.
    [[nodiscard]] double area(std::uint32_t crystal) const;
    /// Whether lines between other modules may cross some.
    [[nodiscard]] bool any_in_the_way() const { return !in_the_way_.empty(); }

  private:
    /// Crystals side by side, in the axes of the module: outward, along y, along z.
    struct Slab {
        Vector3 low;
        Vector3 high;
        double per_mm;
    };
    struct CrystalFace {
        std::uint32_t module;
        std::uint32_t layer;
        float y;  ///< middle and half sides of the front face, in the axes of the module
        float z;
        float half_y;
        float half_z;
    };
    struct InTheWay {
        std::uint32_t module;
        Vector3 middle;
        double radius;  ///< of a sphere around the middle that holds it
    };
    [[nodiscard]] Vector3 node(const CrystalFace& part, int index) const;
    [[nodiscard]] Vector3 in_module(const config::Module& module, const Vector3& point) const;
    [[nodiscard]] double thickness_before(const CrystalFace& part, const Vector3& from,
                                          const Vector3& to) const;
    /// Of one module.
    [[nodiscard]] double thickness_in(const InTheWay& one, const Vector3& from, const Vector3& to) const;
    /// Whether a line within `margin` of this one may cross it.
    static bool near(const InTheWay& one, const Vector3& from, const Vector3& to, double margin);
    void find_in_the_way();

    std::shared_ptr<const config::Arrangement> arrangement_;
    bool deep_;
    std::vector<std::vector<Slab>> slabs_;  ///< [type][layer]
    std::vector<CrystalFace> parts_;        ///< [crystal]
    std::vector<InTheWay> in_the_way_;
};

}  // namespace petacq::geometry

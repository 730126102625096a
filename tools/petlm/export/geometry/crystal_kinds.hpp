// Crystals of equal size and material, for formats that state them once for many crystals.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"

namespace petacq::petlm {

/// What the crystals of a kind have in common. Lengths in mm.
struct CrystalKind {
    double y_mm = 0;  ///< in a ring the pitch
    double z_mm = 0;
    double length_mm = 0;
    std::string material{};
    double attenuation_per_cm = 0;  ///< at 511 keV
    double front_mm = 0;            ///< from the axis to the front face of the first of them
    std::uint32_t crystals = 0;     ///< how many
};

/// The kinds of crystals of a scanner, in the order of their first crystals. A ring has one.
class CrystalKinds {
  public:
    explicit CrystalKinds(const config::Scanner& scanner);

    [[nodiscard]] const std::vector<CrystalKind>& kinds() const { return kinds_; }
    [[nodiscard]] std::uint32_t kind_of(std::uint32_t crystal) const {
        return of_crystal_.empty() ? 0 : of_crystal_[crystal];
    }
    /// The crystals, kind by kind, in each by their numbers.
    [[nodiscard]] std::vector<std::uint32_t> in_order() const;

  private:
    std::uint32_t crystal_count_;
    std::vector<CrystalKind> kinds_;
    std::vector<std::uint32_t> of_crystal_;  ///< [crystal]; empty: one kind
};

}  // namespace petacq::petlm

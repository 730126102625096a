// The rings of crystals along the axis, for pictures.
#pragma once

#include <cstdint>
#include <vector>

#include "config/scanner.hpp"

namespace petacq::petlm {

/// The rings of the short form. In the long form crystals may be anywhere along the axis: rings are equal
/// bins there, as wide as the smallest distance of neighbouring crystals.
class AxialRings {
  public:
    explicit AxialRings(const config::Scanner& scanner);

    [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(z_.size()); }
    [[nodiscard]] std::uint32_t of(std::uint32_t crystal) const { return ring_of_[crystal]; }
    [[nodiscard]] double z_mm(std::uint32_t ring) const { return z_[ring]; }
    [[nodiscard]] double pitch_mm() const { return pitch_; }

  private:
    double pitch_;
    std::vector<std::uint32_t> ring_of_;  ///< [crystal]
    std::vector<double> z_;               ///< [ring]
};

}  // namespace petacq::petlm

// The energies that a run accepts, and how well it measures them.
#pragma once

#include <cstdint>
#include <optional>

#include "config/configuration.hpp"

namespace petacq::corrections {

inline constexpr double photopeak = 511;  ///< keV

/// Energies in keV. The resolution is that of a Gaussian whose width grows as the square root of the energy.
struct EnergyWindow {
    double lower = 350;
    double upper = 650;
    double resolution = 0.12;  ///< FWHM / energy at 511 keV

    /// The share of photons of this energy that the window accepts.
    [[nodiscard]] double accepted(double energy) const;
};

/// Measures the resolution from the prompts of a run: no photon is scattered to more than 511 keV, so the
/// mean square of (energy - 511 keV) of the energies above is that of the Gaussian alone.
class PhotopeakWidth {
  public:
    void add(float energy) {
        if (!(energy > 511)) return;
        const double above = static_cast<double>(energy) - 511;
        squares_ += above * above;
        ++count_;
    }
    /// The window of the rules of the records, and the measured resolution; the defaults of EnergyWindow
    /// where they are not known.
    [[nodiscard]] EnergyWindow window(const std::optional<config::Energy>& rule) const;

  private:
    double squares_ = 0;
    std::uint64_t count_ = 0;
};

}  // namespace petacq::corrections

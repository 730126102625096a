// The energies that a run accepts, and how well it measures them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
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
    /// Of the energies found in the window, those below the photopeak; absent: not measured.
    std::optional<double> low_share{};

    /// The share of photons of this energy that the window accepts.
    [[nodiscard]] double accepted(double energy) const { return below(upper, energy) - below(lower, energy); }
    /// Those of them that are found below the photopeak.
    [[nodiscard]] double accepted_low(double energy) const {
        return below(std::max(lower, photopeak_begins()), energy) - below(lower, energy);
    }
    [[nodiscard]] double photopeak_begins() const;

  private:
    /// The share of photons of this energy that are found below a limit.
    [[nodiscard]] double below(double limit, double energy) const;
};

/// Measures the resolution from the prompts of a run: no photon is scattered to more than 511 keV, so the
/// mean square of (energy - 511 keV) of the energies above is that of the Gaussian alone. Counts the energies
/// below the photopeak.
class PhotopeakWidth {
  public:
    void add(float energy) {
        if (energy >= 0 && energy < 2 * static_cast<float>(photopeak))
            ++spectrum_[static_cast<std::size_t>(energy)];
        if (!(energy > 511)) return;
        const double above = static_cast<double>(energy) - 511;
        squares_ += above * above;
        ++count_;
    }
    /// The window of the rules of the records, and the measured resolution; the defaults of EnergyWindow
    /// where they are not known.
    [[nodiscard]] EnergyWindow window(const std::optional<config::Energy>& rule) const;
    /// The resolution from energies of less than 1.5 standard deviations above 511 keV, for nuclides whose
    /// prompt gammas are among the energies above.
    [[nodiscard]] double resolution_near_peak() const;

  private:
    double squares_ = 0;
    std::uint64_t count_ = 0;
    std::array<std::uint64_t, 2 * static_cast<std::size_t>(photopeak)> spectrum_{};  ///< by keV
};

}  // namespace petacq::corrections

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

/// Measures the resolution from the prompts of a run, and counts the energies below the photopeak.
///
/// Maximum likelihood of the spectrum near 511 keV, from 1.5 standard deviations below to 2 above, as far as
/// the window accepts them: a Gaussian at 511 keV; a step of the same width there, of the photons that were
/// scattered; and the side of a peak at 603 keV, for what prompt gammas add above. So one rule holds for all
/// nuclides. Gammas nearer to 511 keV (559 keV of Br-76, 560 keV of I-120) are told from it in part only.
class PhotopeakWidth {
  public:
    void add(float energy) {
        if (energy >= 0 && energy < 2 * static_cast<float>(photopeak))
            ++spectrum_[static_cast<std::size_t>(energy)];
    }
    /// The window of the rules of the records, and the measured resolution; the defaults of EnergyWindow
    /// where they are not known.
    [[nodiscard]] EnergyWindow window(const std::optional<config::Energy>& rule) const;

  private:
    std::array<std::uint64_t, 2 * static_cast<std::size_t>(photopeak)> spectrum_{};  ///< by keV
};

}  // namespace petacq::corrections

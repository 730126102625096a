// The photopeaks of the crystals of a detector unit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/petcal/estimate/photopeak.hpp"

namespace petacq::petcal {

enum class PeakState : std::uint8_t {
    fitted = 0,
    few_counts = 1,  ///< the peak has too few counts
    no_peak = 2,     ///< enough counts, but no clear peak
};

struct CrystalPeak {
    PeakState state = PeakState::few_counts;
    Photopeak peak;  ///< of a fitted one
};

struct UnitEnergies {
    std::vector<CrystalPeak> crystals;
    double median_place = 0;  ///< of the fitted peaks; 0: none
    /// The sum of the crystals, each scaled to have its peak at the median place, and its peak; none: no
    /// crystal has one. The widths of single crystals with few counts are too small: their background takes a
    /// part of the peak.
    std::vector<std::uint32_t> sum;
    std::optional<Photopeak> common;
    std::string refused;  ///< what was expected and what was found; empty: the peaks can be used
};

inline constexpr double min_peak_counts = 250;      ///< for a place known to about half a percent
inline constexpr double min_fitted_crystals = 0.5;  ///< share of the crystals of a unit

/// `spectra`: [crystal][bin], the last bin holds all higher energies. `from` and `to`: the bins between which
/// the photopeak of the unit is searched. Those of crystals lie within 40 percent of it.
UnitEnergies derive_unit_energies(std::span<const std::uint32_t> spectra, std::size_t bins, double from,
                                  double to);

/// The peaks of another line, whose energy is `ratio` times that of the first. `spectra` were taken with the
/// same factors. Each is searched within 15 percent of where a linear crystal would have it.
UnitEnergies derive_second_line(std::span<const std::uint32_t> spectra, std::size_t bins,
                                const UnitEnergies& first, double ratio);

}  // namespace petacq::petcal

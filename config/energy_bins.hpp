// The energy bins of the calibration's factor table, and those of spectra.
#pragma once

#include <cstdint>

namespace petacq::config {

/// ADC values per energy bin of the factor table (spec: min(adc / 10, bins - 1)).
inline constexpr std::uint32_t adc_per_bin = 10;
/// A 16-bit ADC value reaches no bin beyond these.
inline constexpr std::uint32_t max_bins = 65535 / adc_per_bin + 1;

/// Bins of an energy spectrum, by the energies that the calibration gives; the last one holds all higher
/// energies.
inline constexpr std::uint32_t energy_bins = 256;
/// Their width, except where singles_bin_keV() says another one.
inline constexpr float energy_bin_keV = 4;  // NOLINT(readability-identifier-naming): the unit's spelling

/// Their width in the spectra of all singles if gammas have energies up to this one, keV: doubled until these
/// lie below the last bin. A power of two, so that a product in f32 finds the bin exactly. The widest bins
/// reach beyond the gammas of all nuclides: a window that is open at the top gets no wider ones.
constexpr float singles_bin_keV(double highest_gamma) {
    constexpr float widest = 16;
    float width = energy_bin_keV;
    while (width < widest && highest_gamma > width * (energy_bins - 1))
        width *= 2;
    return width;
}

}  // namespace petacq::config

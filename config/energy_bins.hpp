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
inline constexpr float energy_bin_keV = 4;  // NOLINT(readability-identifier-naming): the unit's spelling

}  // namespace petacq::config

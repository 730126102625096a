// The energy bins of the calibration's factor table.
#pragma once

#include <cstdint>

namespace petacq::config {

/// ADC values per energy bin of the factor table (spec: min(adc / 10, bins - 1)).
inline constexpr std::uint32_t adc_per_bin = 10;
/// A 16-bit ADC value reaches no bin beyond these.
inline constexpr std::uint32_t max_bins = 65535 / adc_per_bin + 1;

}  // namespace petacq::config

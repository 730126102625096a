// Constants of nature and of mathematics that several programs need.
#pragma once

namespace petacq::config {

inline constexpr double light_mm_per_ps = 0.299792458;
/// Full width at half maximum of a Gaussian, in standard deviations: 2 sqrt(2 ln 2).
inline constexpr double fwhm_per_sigma = 2.3548200450309493;

}  // namespace petacq::config

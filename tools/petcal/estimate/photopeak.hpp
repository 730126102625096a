// The photopeak of an energy spectrum.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace petacq::petcal {

/// Energies and widths are in bins: energy e lies at e / width of a bin, so that bin b spans b to b + 1.
struct Photopeak {
    double place = 0;        ///< its middle
    double sigma = 0;        ///< standard deviation
    double counts = 0;       ///< in the peak, without the background
    double error = 0;        ///< standard deviation of `place` by the counts
    double sigma_error = 0;  ///< the same of `sigma`
    double step = 0;         ///< fall of the background across the peak, counts per bin
};

/// What the peaks of similar crystals have in common. A fit that knows it is three times as precise.
struct PeakShape {
    double resolution = 0;  ///< sigma / place; that of a crystal differs by some ten percent; 0: unknown
    double step = 0;        ///< of the background, times place / counts in the peak
};

/// As PeakShape has it.
inline double step_of(const Photopeak& peak) {
    return peak.step * peak.place / peak.counts;
}

/// Roughly where the peak is: the bin from `from` to below `to` with most counts per relative width, after
/// smoothing over `smooth` bins (a standard deviation). None where there are no counts.
std::optional<double> highest_bin(std::span<const double> spectrum, double from, double to, double smooth);

/// Fits a Gaussian by maximum likelihood of Poisson counts, from 1.7 standard deviations below the peak
/// to 2.5 above it: the Compton edge stays outside. Its background is flat on both sides of a step of the
/// same width at the same place: photons that were scattered have less energy than the peak, others any. None
/// when the fit does not converge to a peak within 20 percent of `near` that is 1.5 to 20 percent wide
/// (sigma).
std::optional<Photopeak> fit_photopeak(std::span<const std::uint32_t> spectrum, double near,
                                       const std::optional<PeakShape>& shape = std::nullopt);

}  // namespace petacq::petcal

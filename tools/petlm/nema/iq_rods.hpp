// The rods of the image quality phantom, fitted. The standard takes the largest voxel of a rod, which noise
// makes larger; the fit uses all voxels of all rods.
#pragma once

#include <array>
#include <optional>

#include "tools/petlm/nema/iq_phantom.hpp"

namespace petacq::nema {

/// A disk of the diameter of the rod and of value 1 that a Gaussian of the standard deviation blurs: its
/// value at a distance from the middle.
double blurred_disk(double diameter_mm, double sigma_mm, double distance_mm);

struct RodFit {
    double fwhm_mm = unknown;          ///< of the Gaussian, the same for all rods
    std::array<double, 2> shift_mm{};  ///< by which the rods lie elsewhere than at the place
    double turn_deg = 0;               ///< around the axis of the phantom, likewise
    struct Rod {
        double height = unknown;  ///< of the blurred rod in its middle, in units of the image
        double error = unknown;   ///< standard deviation, from the spread between planes
    };
    std::array<Rod, iq::rod_diameters.size()> rods;
};
/// Of the central 10 mm of the rods. Nothing if the fit moves the rods away from their place.
std::optional<RodFit> fit_rods(const Image& image, const IqPlace& place);

}  // namespace petacq::nema

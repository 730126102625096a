// Sums over the images that petlm tracers makes of two cylinders, 12 mm apart, 8 mm wide and 30 mm long.
#pragma once

#include <cmath>
#include <filesystem>
#include <string>

#include "tests/support/image_file.hpp"

namespace petacq::test {

/// The first tracer emits no gammas and is in the cylinder at x = 6 mm. The other one is in that at x = -6
/// mm.
struct TwoTracers {
    double first_in_other = 0;  ///< relative to the other
    double other_in_first = 0;
    double ratio = 0;  ///< of the other to the first
};

/// Sums over the cylinders and what lies up to 2 mm beyond them.
inline TwoTracers two_tracers_in(const std::filesystem::path& output, const std::string& first,
                                 const std::string& other) {
    const auto sum = [&](const std::string& nuclide, double x) {
        double out = 0;
        ImageFile(output / (nuclide + ".nii")).each([&](float value, double px, double py, double pz) {
            if (std::hypot(px - x, py) < 6 && std::abs(pz) < 17) out += static_cast<double>(value);
        });
        return out;
    };
    const double own = sum(other, -6);
    const double own_of_first = sum(first, 6);
    return {sum(first, -6) / own, sum(other, 6) / own_of_first, own / own_of_first};
}

}  // namespace petacq::test

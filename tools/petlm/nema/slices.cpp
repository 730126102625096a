#include "tools/petlm/nema/slices.hpp"

#include <algorithm>
#include <cmath>

namespace petacq::nema {
namespace {

/// [ring] position along the axis.
std::vector<double> ring_positions(const config::Scanner& scanner) {
    std::vector<double> z;
    for (std::uint32_t ring = 0; ring < scanner.geometry.rings(); ++ring) {
        const auto place = config::crystal_place(scanner, ring * scanner.geometry.crystals_in_ring());
        z.push_back(place.front_centre_mm[2]);
    }
    return z;
}

}  // namespace

SliceBins::SliceBins(const config::Scanner& scanner, const config::DepthOfInteraction& depth, double width_mm,
                     std::uint32_t max_ring_difference)
    : lines_(scanner, depth, std::max(1U, scanner.geometry.crystals_in_ring() / 2),
             sinogram::LineBins::radial_of(scanner, width_mm)),
      in_ring_(scanner.geometry.crystals_in_ring()),
      rings_(scanner.geometry.rings()),
      max_ring_difference_(max_ring_difference),
      slices_(2 * std::size_t{rings_} - 1) {
    const auto z = ring_positions(scanner);
    low_ = z.front();
    thickness_ = rings_ == 1 ? scanner.dimensions.crystal_pitch_z_mm
                             : (z.back() - z.front()) / static_cast<double>(slices_ - 1);
    for (std::uint32_t a = 0; a < rings_; ++a) {
        for (std::uint32_t b = 0; b < rings_; ++b) {
            // The small part makes middles between two slices go to the same side whatever the rounding.
            const double slice = (0.5 * (z[a] + z[b]) - low_) / thickness_;
            slice_of_.push_back(static_cast<std::uint32_t>(
                std::clamp(std::floor(slice + 0.5 + 1e-9), 0.0, static_cast<double>(slices_ - 1))));
        }
    }
}

std::vector<std::uint64_t> sum_of_slices(const SliceBins& bins, const Sinograms& sinograms) {
    std::vector<std::uint64_t> sum(bins.in_slice());
    for (std::size_t i = 0; i < sinograms.counts.size(); ++i)
        sum[i % sum.size()] += sinograms.counts[i];
    return sum;
}

}  // namespace petacq::nema

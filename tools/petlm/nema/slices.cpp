#include "tools/petlm/nema/slices.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "config/shape/extent.hpp"

namespace petacq::nema {
namespace {

constexpr double max_slices = 1U << 16U;

}  // namespace

SliceBins::SliceBins(const config::Scanner& scanner, const config::DepthOfInteraction& depth, double width_mm,
                     std::uint32_t max_ring_difference)
    : lines_(scanner, depth, sinogram::LineBins::angles_of(scanner),
             sinogram::LineBins::radial_of(scanner, width_mm)),
      max_ring_difference_(max_ring_difference) {
    const config::Geometry& geometry = scanner.geometry;
    for (std::uint32_t crystal = 0; crystal < geometry.crystal_count(); ++crystal) {
        const std::uint32_t ring = geometry.is_ring() ? crystal / geometry.crystals_in_ring()
                                                      : geometry.pairs->crystals[crystal].ring;
        ring_of_.push_back(ring);
        if (ring >= z_of_ring_.size()) z_of_ring_.resize(ring + 1);
        z_of_ring_[ring] = config::crystal_place(scanner, crystal).front_centre_mm[2];
    }
    low_ = z_of_ring_.front();
    const double length = z_of_ring_.back() - low_;
    const double pitch = config::extent_of(scanner).axial_pitch_mm;
    if (z_of_ring_.size() == 1) {
        slices_ = 1;
        thickness_ = pitch;
    } else if (geometry.is_ring()) {
        slices_ = 2 * z_of_ring_.size() - 1;
        thickness_ = length / static_cast<double>(slices_ - 1);
    } else {
        slices_ = static_cast<std::size_t>(std::clamp(std::ceil(2 * length / pitch), 1.0, max_slices)) + 1;
        thickness_ = length / static_cast<double>(slices_ - 1);
    }
}

std::vector<std::size_t> columns_of_source(const SliceBins& bins,
                                           const std::vector<std::uint64_t>& sum_of_slices, std::size_t first,
                                           std::size_t last) {
    constexpr double agree_bins = 2;
    constexpr int rounds = 5;
    const std::size_t radial = bins.lines().radial();
    const std::size_t angles = bins.lines().angles();
    std::vector<std::size_t> columns;
    std::vector<double> counts;
    for (std::size_t row = 0; row < angles; ++row) {
        const auto begin = sum_of_slices.begin() + static_cast<std::ptrdiff_t>(row * radial);
        const auto largest = std::max_element(begin + static_cast<std::ptrdiff_t>(first),
                                              begin + static_cast<std::ptrdiff_t>(last));
        columns.push_back(static_cast<std::size_t>(largest - begin));
        counts.push_back(static_cast<double>(*largest));
    }
    // s = x cos + y sin: by least squares with the counts as weights, from the second round on without the
    // angles that do not agree.
    const auto column_at = [&](std::size_t row, const std::array<double, 2>& place) {
        const double phi = bins.lines().angle_deg(static_cast<std::uint32_t>(row)) * std::numbers::pi / 180;
        const double s = place[0] * std::cos(phi) + place[1] * std::sin(phi);
        return std::clamp((s + bins.lines().radius_mm()) / bins.lines().width_mm() - 0.5,
                          static_cast<double>(first), static_cast<double>(last - 1));
    };
    std::array<double, 2> place{};
    for (int round = 0; round < rounds; ++round) {
        double cc = 0;
        double cs = 0;
        double ss = 0;
        double c_s = 0;
        double s_s = 0;
        for (std::size_t row = 0; row < angles; ++row) {
            if (round > 0 && std::abs(column_at(row, place) - static_cast<double>(columns[row])) > agree_bins)
                continue;
            const double phi =
                bins.lines().angle_deg(static_cast<std::uint32_t>(row)) * std::numbers::pi / 180;
            const double s = bins.lines().radial_mm(static_cast<std::uint32_t>(columns[row]));
            cc += counts[row] * std::cos(phi) * std::cos(phi);
            cs += counts[row] * std::cos(phi) * std::sin(phi);
            ss += counts[row] * std::sin(phi) * std::sin(phi);
            c_s += counts[row] * std::cos(phi) * s;
            s_s += counts[row] * std::sin(phi) * s;
        }
        const double determinant = cc * ss - cs * cs;
        if (!(determinant > 0)) return columns;
        place = {(ss * c_s - cs * s_s) / determinant, (cc * s_s - cs * c_s) / determinant};
    }
    for (std::size_t row = 0; row < angles; ++row) {
        const double column = column_at(row, place);
        if (std::abs(column - static_cast<double>(columns[row])) > agree_bins)
            columns[row] = static_cast<std::size_t>(std::lround(column));
    }
    return columns;
}

std::vector<std::uint64_t> sum_of_slices(const SliceBins& bins, const Sinograms& sinograms) {
    std::vector<std::uint64_t> sum(bins.in_slice());
    for (std::size_t i = 0; i < sinograms.counts.size(); ++i)
        sum[i % sum.size()] += sinograms.counts[i];
    return sum;
}

}  // namespace petacq::nema

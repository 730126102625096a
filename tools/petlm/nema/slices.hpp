// Single-slice rebinning: every line goes to the slice at the middle of its two crystals.
//
// M. E. Daube-Witherspoon, G. Muehllehner, J. Nucl. Med. 28 (1987) 1717.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "daemon/sinogram/line_bins.hpp"
#include "gpu/base/records.hpp"

namespace petacq::nema {

/// One sinogram for each slice. Slices are equally thick: half of the mean distance of the rings, or, in the
/// long form, of the smallest distance of crystals along the axis. Gaps between blocks shift the middle of
/// two crystals by less than a slice. Thread-safe.
class SliceBins {
  public:
    static constexpr std::size_t outside = SIZE_MAX;

    /// Angles as fine as the crystals, and bins of s about as wide as `width_mm`. Lines of rings further
    /// apart than `max_ring_difference` are outside; rings of the long form are places along the axis.
    SliceBins(const config::Scanner& scanner, const config::DepthOfInteraction& depth, double width_mm,
              std::uint32_t max_ring_difference = UINT32_MAX);

    [[nodiscard]] std::size_t slices() const { return slices_; }
    [[nodiscard]] const sinogram::LineBins& lines() const { return lines_; }
    /// Bins of the sinogram of a slice, angle by angle.
    [[nodiscard]] std::size_t in_slice() const { return std::size_t{lines_.angles()} * lines_.radial(); }
    [[nodiscard]] std::size_t bins() const { return slices_ * in_slice(); }
    [[nodiscard]] double thickness_mm() const { return thickness_; }
    /// Its middle.
    [[nodiscard]] double slice_mm(std::size_t slice) const {
        return low_ + static_cast<double>(slice) * thickness_;
    }
    [[nodiscard]] std::uint32_t max_ring_difference() const { return max_ring_difference_; }
    /// Whatever the difference of their rings.
    [[nodiscard]] std::size_t slice_of(std::uint32_t crystal_a, std::uint32_t crystal_b) const {
        // The small part makes middles between two slices go to the same side whatever the rounding.
        const double slice =
            (0.5 * (z_of_ring_[ring_of_[crystal_a]] + z_of_ring_[ring_of_[crystal_b]]) - low_) / thickness_;
        return static_cast<std::size_t>(
            std::clamp(std::floor(slice + 0.5 + 1e-9), 0.0, static_cast<double>(slices_ - 1)));
    }
    /// Whether the rings of two crystals are close enough.
    [[nodiscard]] bool near(std::uint32_t crystal_a, std::uint32_t crystal_b) const {
        const std::uint32_t a = ring_of_[crystal_a];
        const std::uint32_t b = ring_of_[crystal_b];
        return (a > b ? a - b : b - a) <= max_ring_difference_;
    }
    /// slice * in_slice() + the bin of LineBins; `outside` for lines beyond the edge of the sinogram.
    [[nodiscard]] std::size_t of(std::uint32_t crystal_a, std::uint32_t crystal_b) const {
        const std::uint32_t line = lines_.of(crystal_a, crystal_b);
        if (line == sinogram::LineBins::outside || !near(crystal_a, crystal_b)) return outside;
        return slice_of(crystal_a, crystal_b) * in_slice() + line;
    }

    /// Where a bin is after its lines have moved by so many rows (LineBins::moved); `outside` stays there.
    [[nodiscard]] std::size_t moved(std::size_t bin, std::uint32_t rows) const {
        if (rows == 0 || bin == outside) return bin;
        return bin / in_slice() * in_slice() +
               lines_.moved(static_cast<std::uint32_t>(bin % in_slice()), rows);
    }

  private:
    sinogram::LineBins lines_;
    std::uint32_t max_ring_difference_;
    std::vector<std::uint32_t> ring_of_;  ///< [crystal]
    std::vector<double> z_of_ring_;       ///< rising, mm
    std::size_t slices_ = 0;
    double thickness_ = 0;
    double low_ = 0;
};

/// The prompts of an acquisition.
struct Sinograms {
    std::vector<std::uint32_t> counts;  ///< [SliceBins::of]
    std::uint64_t outside = 0;

    explicit Sinograms(const SliceBins& bins) : counts(bins.bins()) {}
    /// `rows`: by which its line has moved, as the scanner turned.
    void add(const SliceBins& bins, const gpu::Coincidence& pair, std::uint32_t rows = 0) {
        const std::size_t bin = bins.moved(bins.of(pair.crystal_a, pair.crystal_b), rows);
        if (bin == SliceBins::outside) {
            ++outside;
        } else {
            ++counts[bin];
        }
    }
};

/// [angle] the column of the source, point or line along the axis: the largest bin from `first` to `last`
/// (exclusive). A gap between blocks leaves angles without a line through the source, whose largest bin is
/// anywhere: where it is not at the place that the other angles agree upon, that place is taken.
std::vector<std::size_t> columns_of_source(const SliceBins& bins,
                                           const std::vector<std::uint64_t>& sum_of_slices, std::size_t first,
                                           std::size_t last);

/// [bin of a slice] the sum over all slices.
std::vector<std::uint64_t> sum_of_slices(const SliceBins& bins, const Sinograms& sinograms);

}  // namespace petacq::nema

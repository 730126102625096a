// The sinogram of a run while it is measured, and a quick image from it.
//
// Every coincidence counts by the projection of its line along the axis: the sum over all slices of
// single-slice rebinning (M. E. Daube-Witherspoon, G. Muehllehner, J. Nucl. Med. 28 (1987) 1717). The image
// is the sum over all slices, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "daemon/sinogram/line_bins.hpp"
#include "gpu/base/records.hpp"
#include "gpu/rules/pair_rule.hpp"

namespace petacq::sinogram {

/// A square in the middle of the bore: value (i, j) is at x = (i - (size - 1) / 2) * step_mm, y likewise with
/// j.
struct TransverseImage {
    std::size_t size = 0;
    double step_mm = 0;
    std::vector<double> values;  ///< [j * size + i], coincidences per line and area; without a unit
};

/// Photons interact at their mean depth in the crystals. No thread-safety.
class LiveSinogram {
  public:
    /// `rule`: which pairs of crystals can be coincidences.
    LiveSinogram(const config::Scanner& scanner, const gpu::PairRule& rule);

    void clear();
    void add(std::span<const gpu::Coincidence> records);
    /// The same of a scanner that turns; records are in order of time. REQUIRES: angle.known().
    void add(std::span<const gpu::Coincidence> records, const config::AngleOverTime& angle);

    [[nodiscard]] const LineBins& lines() const { return lines_; }
    [[nodiscard]] std::uint64_t prompts() const { return prompts_; }
    [[nodiscard]] std::uint64_t delayeds() const { return delayeds_; }
    /// [angle * radial + column] prompts.
    [[nodiscard]] const std::vector<std::uint32_t>& counts() const { return counts_; }
    /// Prompts less delayeds, divided by the number of lines in each bin, by filtered back-projection with a
    /// Hann window up to the Nyquist frequency. Neither normalised nor corrected otherwise.
    [[nodiscard]] TransverseImage image() const;

  private:
    void count(const gpu::Coincidence& c, std::uint32_t rows);
    [[nodiscard]] std::vector<double> lines_in_time() const;

    LineBins lines_;
    double step_mm_;
    std::size_t size_;
    std::vector<double> lines_of_bin_;
    /// [rows by which lines have moved] how many ticks the scanner stood there. It stays empty if the scanner
    /// does not turn.
    std::vector<double> ticks_at_;
    std::uint64_t last_time_ = 0;
    std::vector<std::uint32_t> counts_;
    std::vector<std::uint32_t> delayed_counts_;
    std::uint64_t prompts_ = 0;
    std::uint64_t delayeds_ = 0;
};

}  // namespace petacq::sinogram

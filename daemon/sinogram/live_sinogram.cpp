#include "daemon/sinogram/live_sinogram.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "config/shape/extent.hpp"
#include "daemon/sinogram/back_projection.hpp"
#include "daemon/sinogram/lines_per_bin.hpp"

namespace petacq::sinogram {

namespace {

constexpr std::uint32_t max_angles = 512;
constexpr std::uint32_t max_radial = 512;
constexpr std::size_t max_pixels = 255;  ///< in a row; odd, so that one is in the middle

LineBins lines_of(const config::Scanner& scanner) {
    const std::uint32_t angles = std::min(LineBins::angles_of(scanner), max_angles);
    const std::uint32_t radial =
        LineBins::radial_of(scanner, config::extent_of(scanner).transaxial_pitch_mm / 2);
    return {scanner, config::DepthOfInteraction::of(scanner, {}), angles, std::min(radial, max_radial)};
}

/// The convolution with (1, 2, 1) / 4 is a Hann window: its transfer function is (1 + cos(2 pi f w)) / 2.
void smooth(Projections& p) {
    for (std::size_t row = 0; row < p.angles; ++row) {
        double* const values = p.values.data() + row * p.radial;
        double before = 0;
        for (std::size_t i = 0; i < p.radial; ++i) {
            const double here = values[i];
            const double after = i + 1 < p.radial ? values[i + 1] : 0;
            values[i] = (before + 2 * here + after) / 4;
            before = here;
        }
    }
}

}  // namespace

LiveSinogram::LiveSinogram(const config::Scanner& scanner, const gpu::PairRule& rule)
    : lines_(lines_of(scanner)),
      step_mm_(std::max(lines_.width_mm(), 2 * lines_.radius_mm() / max_pixels)),
      size_(2 * static_cast<std::size_t>(lines_.radius_mm() / step_mm_) + 1),
      lines_of_bin_(lines_per_bin(lines_, scanner.geometry, rule)),
      counts_(lines_of_bin_.size()),
      delayed_counts_(lines_of_bin_.size()) {}

void LiveSinogram::clear() {
    std::fill(counts_.begin(), counts_.end(), 0);
    std::fill(delayed_counts_.begin(), delayed_counts_.end(), 0);
    ticks_at_.clear();
    prompts_ = 0;
    delayeds_ = 0;
}

void LiveSinogram::count(const gpu::Coincidence& c, std::uint32_t rows) {
    const bool delayed = c.kind == gpu::Kind::delayed;
    ++(delayed ? delayeds_ : prompts_);
    const std::uint32_t bin = lines_.of(c.crystal_a, c.crystal_b);
    if (bin == LineBins::outside) return;
    ++(delayed ? delayed_counts_ : counts_)[rows == 0 ? bin : lines_.moved(bin, rows)];
}

void LiveSinogram::add(std::span<const gpu::Coincidence> records) {
    for (const gpu::Coincidence& c : records)
        count(c, 0);
}

void LiveSinogram::add(std::span<const gpu::Coincidence> records, const config::AngleOverTime& angle) {
    for (const gpu::Coincidence& c : records) {
        const std::uint32_t rows = lines_.rows_turned(angle.at(c.time));
        if (ticks_at_.empty()) {
            ticks_at_.resize(lines_.rows_of_turn());
            last_time_ = c.time;
        }
        if (c.time > last_time_) ticks_at_[rows] += static_cast<double>(c.time - last_time_);
        last_time_ = c.time;
        count(c, rows);
    }
}

/// The lines of each bin, in a scanner that turns their mean over time.
std::vector<double> LiveSinogram::lines_in_time() const {
    if (ticks_at_.empty()) return lines_of_bin_;
    std::vector<double> sum(lines_of_bin_.size());
    const double all = std::accumulate(ticks_at_.begin(), ticks_at_.end(), 0.0);
    for (std::uint32_t rows = 0; rows < ticks_at_.size(); ++rows)
        if (ticks_at_[rows] > 0) lines_.add_moved(lines_of_bin_, rows, ticks_at_[rows] / all, sum);
    return sum;
}

TransverseImage LiveSinogram::image() const {
    std::vector<double> net(counts_.size());
    std::transform(counts_.begin(), counts_.end(), delayed_counts_.begin(), net.begin(),
                   [](double prompts, double delayeds) { return prompts - delayeds; });
    Projections projections =
        normalised(lines_.angles(), lines_.radial(), lines_.width_mm(), net, lines_in_time());
    smooth(projections);
    return {size_, step_mm_, back_project(projections, {0, 0, 0, step_mm_, size_})};
}

}  // namespace petacq::sinogram

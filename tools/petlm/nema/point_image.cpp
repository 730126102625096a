#include "tools/petlm/nema/point_image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>

#include "config/shape/extent.hpp"
#include "daemon/sinogram/lines_per_bin.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/nema/standard.hpp"

namespace petacq::nema {

using sinogram::back_project;
using sinogram::normalised;

namespace {

constexpr double reach_in_pitches = 7;
constexpr double steps_per_pitch = 8;
constexpr double bins_per_pitch = 4;
constexpr double on_axis_mm = 1;  ///< nearer to the axis, radial is along x
constexpr std::size_t samples = 10;
constexpr double projection_reach_deg = 10;  ///< on both sides
constexpr std::uint32_t max_crystals = 16384;

double finer_pitch(const config::Extent& extent) {
    return std::min(extent.transaxial_pitch_mm, extent.axial_pitch_mm);
}

struct Volume {
    std::array<std::size_t, directions> n;  ///< radial, tangential, axial
    std::array<double, directions> step_mm;
    const std::vector<double>& values;

    [[nodiscard]] double at(const std::array<std::size_t, directions>& i) const {
        return values[(i[2] * n[1] + i[1]) * n[0] + i[0]];
    }
};

std::array<std::size_t, directions> peak_of(const Volume& volume) {
    const auto largest = std::max_element(volume.values.begin(), volume.values.end());
    const auto i = static_cast<std::size_t>(largest - volume.values.begin());
    return {i % volume.n[0], i / volume.n[0] % volume.n[1], i / volume.n[0] / volume.n[1]};
}

/// Sums of the lines of voxels along a direction, as far as `half` voxels from the peak in the others.
std::vector<double> profile_of(const Volume& volume, const std::array<std::size_t, directions>& peak,
                               std::size_t direction, const std::array<double, directions>& half_mm) {
    std::array<std::size_t, directions> from{};
    std::array<std::size_t, directions> to{};
    for (std::size_t d = 0; d < directions; ++d) {
        const auto half = static_cast<std::size_t>(std::lround(half_mm[d] / volume.step_mm[d]));
        from[d] = peak[d] - std::min(peak[d], half);
        to[d] = std::min(volume.n[d], peak[d] + half + 1);
    }
    from[direction] = 0;
    to[direction] = volume.n[direction];
    std::vector<double> profile(volume.n[direction]);
    std::array<std::size_t, directions> i{};
    for (i[2] = from[2]; i[2] < to[2]; ++i[2]) {
        for (i[1] = from[1]; i[1] < to[1]; ++i[1]) {
            for (i[0] = from[0]; i[0] < to[0]; ++i[0])
                profile[i[direction]] += volume.at(i);
        }
    }
    return profile;
}

/// Response functions of a volume; nothing if a profile does not fall far enough.
std::optional<PointWidths> measured(const Volume& volume) {
    const auto peak = peak_of(volume);
    std::array<double, directions> half_mm{};
    for (std::size_t d = 0; d < directions; ++d) {
        const auto line = widths_of(profile_of(volume, peak, d, {}), volume.step_mm[d]);
        if (!line) return std::nullopt;
        half_mm[d] = line->fwhm;
    }
    PointWidths found;
    for (std::size_t d = 0; d < directions; ++d) {
        found.profiles[d] = {volume.step_mm[d], profile_of(volume, peak, d, half_mm)};
        const auto widths = widths_of(found.profiles[d].values, volume.step_mm[d]);
        if (!widths) return std::nullopt;
        found.widths[d] = *widths;
        found.errors[d] = {unknown, unknown, unknown, unknown};
    }
    return found;
}

}  // namespace

PointImage::PointImage(const NemaRun& run, const config::DepthOfInteraction& depth,
                       std::uint32_t max_ring_difference)
    : bins_(run.scanner(), depth, config::extent_of(run.scanner()).transaxial_pitch_mm / bins_per_pitch,
            max_ring_difference),
      pitch_(finer_pitch(config::extent_of(run.scanner()))),
      name_(run.source().target().string()) {
    count_lines(run);
    run.for_each({run.whole()}, bins_, [&](std::size_t, const Sinograms& sinograms) {
        prompts_ = std::accumulate(sinograms.counts.begin(), sinograms.counts.end(), 0.0);
        if (!(prompts_ > 0)) throw petlm::BadInput(name_ + ": no prompts");
        find_source(sinograms);
        const auto* const begin = sinograms.counts.data() + first_slice_ * bins_.in_slice();
        counts_.assign(begin, begin + slices_ * bins_.in_slice());
    });
}

void PointImage::count_lines(const NemaRun& run) {
    const config::Geometry& geometry = run.scanner().geometry;
    const gpu::PairRule rule = petlm::pair_rule(run.source(), geometry);
    if (!geometry.is_ring()) {
        count_each_line(rule, geometry.crystal_count());
        return turn_lines(run);
    }
    // All rings are alike: the lines of a bin in a slice are those between crystals of one ring, times the
    // pairs of rings of the slice.
    lines_of_bin_ = sinogram::lines_per_bin(bins_.lines(), geometry, rule);
    lines_of_slice_.resize(bins_.slices());
    const std::uint32_t in_ring = geometry.crystals_in_ring();
    for (std::uint32_t a = 0; a < geometry.crystal_count(); a += in_ring) {
        for (std::uint32_t b = 0; b < geometry.crystal_count(); b += in_ring) {
            const std::uint32_t apart = (a > b ? a - b : b - a) / in_ring;
            if (apart <= rule.max_ring_difference && bins_.near(a, b))
                ++lines_of_slice_[bins_.slice_of(a, b)];
        }
    }
}

void PointImage::count_each_line(const gpu::PairRule& rule, std::uint32_t crystals) {
    if (crystals > max_crystals) {
        throw petlm::BadInput(
            fmt::format("{}: expected a ring in the short form, or at most {} crystals, whose lines can be "
                        "counted one by "
                        "one; the scanner has {}",
                        name_, max_crystals, crystals));
    }
    lines_.resize(bins_.bins());
    for (std::uint32_t a = 0; a < crystals; ++a) {
        for (std::uint32_t b = a + 1; b < crystals; ++b) {
            if (!rule.good(a, b)) continue;
            const std::size_t bin = bins_.of(a, b);
            if (bin != SliceBins::outside) ++lines_[bin];
        }
    }
}

/// Of a scanner that turns: their mean over the decays that were found.
void PointImage::turn_lines(const NemaRun& run) {
    const std::vector<double> shares = run.shares_of_rows(bins_);
    if (shares.size() == 1) return;
    const std::vector<double> still = std::move(lines_);
    lines_.assign(still.size(), 0);
    for (std::uint32_t rows = 0; rows < shares.size(); ++rows) {
        if (!(shares[rows] > 0)) continue;
        for (std::size_t bin = 0; bin < still.size(); ++bin)
            lines_[bins_.moved(bin, rows)] += shares[rows] * still[bin];
    }
}

std::vector<double> PointImage::lines_of(std::size_t from, std::size_t to) const {
    if (lines_.empty()) return lines_of_bin_;
    std::vector<double> sum(bins_.in_slice());
    for (std::size_t i = from * sum.size(); i < to * sum.size(); ++i)
        sum[i % sum.size()] += lines_[i];
    return sum;
}

void PointImage::find_source(const Sinograms& sinograms) {
    std::vector<double> of_slice(bins_.slices());
    for (std::size_t i = 0; i < sinograms.counts.size(); ++i)
        of_slice[i / bins_.in_slice()] += sinograms.counts[i];
    const auto slice =
        static_cast<std::size_t>(std::max_element(of_slice.begin(), of_slice.end()) - of_slice.begin());
    const auto half = static_cast<std::size_t>(std::ceil(reach_in_pitches * pitch_ / bins_.thickness_mm()));
    first_slice_ = slice - std::min(slice, half);
    slices_ = std::min(bins_.slices(), slice + half + 1) - first_slice_;

    // Coarse: the whole bore, then a patch around the largest value.
    std::vector<double> counts(bins_.in_slice());
    const std::size_t from = slice - std::min<std::size_t>(slice, 2);
    const std::size_t to = std::min(bins_.slices(), slice + 3);
    for (std::size_t s = from; s < to; ++s) {
        for (std::size_t i = 0; i < counts.size(); ++i)
            counts[i] += sinograms.counts[s * bins_.in_slice() + i];
    }
    const auto projections = normalised(bins_.lines().angles(), bins_.lines().radial(),
                                        bins_.lines().width_mm(), counts, lines_of(from, to));
    const auto look_in = [&](Patch patch) {
        const auto image = back_project(projections, patch);
        const auto largest =
            static_cast<std::size_t>(std::max_element(image.begin(), image.end()) - image.begin());
        const std::size_t column = largest % patch.size;
        const std::size_t row = largest / patch.size;
        const double centre = 0.5 * static_cast<double>(patch.size - 1);
        patch.x += (static_cast<double>(column) - centre) * patch.step_mm;
        patch.y += (static_cast<double>(row) - centre) * patch.step_mm;
        return patch;
    };
    const auto odd = [](double half_size) { return 2 * static_cast<std::size_t>(std::ceil(half_size)) + 1; };
    Patch patch{0, 0, 0, pitch_ / 2, odd(0.9 * bins_.lines().radius_mm() / (pitch_ / 2))};
    patch = look_in(patch);
    patch = look_in({patch.x, patch.y, 0, pitch_ / steps_per_pitch, odd(2 * steps_per_pitch)});
    place_ = {patch.x, patch.y, bins_.slice_mm(slice)};
    const bool on_axis = std::hypot(patch.x, patch.y) < on_axis_mm;
    patch_ = {patch.x, patch.y, on_axis ? 0 : std::atan2(patch.y, patch.x), pitch_ / steps_per_pitch,
              odd(reach_in_pitches * steps_per_pitch)};
}

std::vector<double> PointImage::volume_of(const std::vector<double>& counts) const {
    std::vector<double> volume;
    for (std::size_t s = 0; s < slices_; ++s) {
        const std::span<const double> slice(counts.data() + s * bins_.in_slice(), bins_.in_slice());
        const auto projections =
            normalised(bins_.lines().angles(), bins_.lines().radial(), bins_.lines().width_mm(), slice,
                       lines_of(first_slice_ + s, first_slice_ + s + 1));
        const double lines = lines_.empty() ? lines_of_slice_[first_slice_ + s] : 1;
        for (const double value : back_project(projections, patch_))
            volume.push_back(lines > 0 ? value / lines : 0);
    }
    return volume;
}

double PointImage::fwhm_of_projection(const std::vector<double>& counts, double angle) const {
    std::vector<double> sum(bins_.in_slice());
    for (std::size_t i = 0; i < counts.size(); ++i)
        sum[i % sum.size()] += counts[i];
    const auto projections =
        normalised(bins_.lines().angles(), bins_.lines().radial(), bins_.lines().width_mm(), sum,
                   lines_of(first_slice_, first_slice_ + slices_));
    const auto half =
        static_cast<std::ptrdiff_t>(std::ceil(reach_in_pitches * pitch_ / projections.width_mm));
    std::vector<double> profile(static_cast<std::size_t>(2 * half + 1));
    for (std::uint32_t row = 0; row < projections.angles; ++row) {
        const double phi = bins_.lines().angle_deg(row) * std::numbers::pi / 180;
        // Lines have no direction: an angle and its opposite are the same row, mirrored.
        const double sign = std::cos(phi - angle) < 0 ? -1 : 1;
        if (sign * std::cos(phi - angle) < std::cos(projection_reach_deg * std::numbers::pi / 180)) continue;
        const double s = place_[0] * std::cos(phi) + place_[1] * std::sin(phi);
        for (std::ptrdiff_t i = -half; i <= half; ++i) {
            const double at =
                (s + projections.radius_mm()) / projections.width_mm - 0.5 + sign * static_cast<double>(i);
            const double low = std::floor(at);
            if (low < 0 || low + 1 >= static_cast<double>(projections.radial)) continue;
            const auto* const bin =
                projections.values.data() + row * projections.radial + static_cast<std::size_t>(low);
            profile[static_cast<std::size_t>(i + half)] += (1 - (at - low)) * bin[0] + (at - low) * bin[1];
        }
    }
    const auto widths = widths_of(profile, projections.width_mm);
    return widths ? widths->fwhm : unknown;
}

PointWidths PointImage::widths() const {
    const auto widths_from = [&](const std::vector<double>& counts) {
        const auto volume = volume_of(counts);
        return measured({{patch_.size, patch_.size, slices_},
                         {patch_.step_mm, patch_.step_mm, bins_.thickness_mm()},
                         volume});
    };
    const auto projections_of = [&](const std::vector<double>& counts) {
        const double radial = patch_.angle;
        return std::array{fwhm_of_projection(counts, radial),
                          fwhm_of_projection(counts, radial + std::numbers::pi / 2)};
    };
    auto found = widths_from(counts_);
    if (!found) {
        throw petlm::BadInput(
            fmt::format("{}: the image of the source does not fall to half of its peak on both sides "
                        "within {:.3g} mm: expected the "
                        "run of one point source, at least as far from the ends of the scanner",
                        name_, reach_in_pitches * pitch_));
    }
    std::mt19937_64 random(1);
    found->fwhm_of_projection = projections_of(counts_);
    std::array<std::vector<Widths>, directions> sampled;
    for (std::size_t i = 0; i < samples; ++i) {
        std::vector<double> counts = counts_;
        for (double& count : counts) {
            if (count > 0) count = std::poisson_distribution<int>(count)(random);
        }
        const auto sample = widths_from(counts);
        for (std::size_t d = 0; sample && d < directions; ++d)
            sampled[d].push_back(sample->widths[d]);
    }
    const auto spread = [](const std::vector<Widths>& all, double Widths::*member) {
        double sum = 0;
        double squares = 0;
        double n = 0;
        for (const Widths& one : all) {
            if (std::isnan(one.*member)) continue;
            sum += one.*member;
            squares += one.*member * one.*member;
            ++n;
        }
        if (n < 2) return unknown;
        return std::sqrt(std::max(0.0, squares - sum * sum / n) / (n - 1));
    };
    for (std::size_t d = 0; d < directions; ++d) {
        found->errors[d].fwhm = spread(sampled[d], &Widths::fwhm);
        found->errors[d].fwtm = spread(sampled[d], &Widths::fwtm);
    }
    return *found;
}

std::vector<std::string> PointImage::procedure() const {
    return {
        fmt::format("Prompts are rebinned to {} slices of {:.4g} mm (SSRB), with {} angles and bins of "
                    "{:.4g} mm, and divided by the number of lines "
                    "in each bin; bins without lines are interpolated. Each slice is made by filtered "
                    "back-projection with the ramp filter, without "
                    "smoothing, to pixels of {:.4g} mm with axes along the radius and the tangent.",
                    bins_.slices(), bins_.thickness_mm(), bins_.lines().angles(), bins_.lines().width_mm(),
                    patch_.step_mm),
        "The standard asks for filtered back-projection. Images of iterative methods are not comparable: "
        "without "
        "activity around the point, values that cannot be negative make it narrower.",
        fmt::format(
            "Beside the standard: fwhm_of_projection is the FWHM in the projections themselves, within {} "
            "degrees of the direction, without back-projection and its streaks. It is what the response "
            "function of the image tends to as more of the other direction is added up.",
            projection_reach_deg),
        "Response functions run through the peak; each is the sum over twice the FWHM in the other two "
        "directions. The peak is that of a parabola "
        "through the largest value and its neighbours, and the widths at half and a tenth of it come "
        "from linear interpolation."};
}

}  // namespace petacq::nema

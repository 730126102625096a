// The energy and time resolution that the records of a run show, of the whole scanner and of each BDM.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/scanner/depth_of_interaction.hpp"
#include "config/scanner/scanner.hpp"

namespace petacq::petlm {

/// The BDM of each crystal.
std::vector<std::uint32_t> modules_of_crystals(const config::Geometry& geometry);

/// A peak: full width at half maximum, with its standard deviation by counting.
struct Peak {
    double place = 0;
    double fwhm = 0;
    double error = 0;
};

/// The photopeak of a spectrum whose last bin holds all higher energies, in keV. None where there are too few
/// counts or no peak near 511 keV.
std::optional<Peak> photopeak_of(std::span<const std::uint64_t> spectrum, double bin_keV);

/// A Gaussian on a level, in bins: from its second moment within 2.5 standard deviations. None where there
/// are too few counts or the peak is wider than the histogram can tell.
std::optional<Peak> gaussian_of(std::span<const std::uint64_t> counts);

/// Where the photons come from: the first two moments of what an image shows, in mm.
struct SeenSource {
    config::Vector3 centre{};
    /// Covariance: xx, yy, zz, xy, xz, yz.
    std::vector<double> spread = std::vector<double>(6);

    /// The variance along a unit vector.
    [[nodiscard]] double variance_along(const config::Vector3& u) const {
        return spread[0] * u[0] * u[0] + spread[1] * u[1] * u[1] + spread[2] * u[2] * u[2] +
               2 * (spread[3] * u[0] * u[1] + spread[4] * u[0] * u[2] + spread[5] * u[1] * u[2]);
    }
};

/// Time differences less what the way from the middle of the source makes, in equal bins.
class TimeWidths {
  public:
    /// Of pairs of the crystals of `scanner`, in a coincidence window of that many ticks.
    TimeWidths(const config::Scanner& scanner, const config::DepthOfInteraction& depth, SeenSource source,
               std::uint32_t window);

    struct Difference {
        double ps = 0;            ///< time at crystal b less that at crystal a, without the way
        double variance_ps2 = 0;  ///< that the extent of the source makes
    };
    /// `ticks`: time of crystal b less that of crystal a.
    [[nodiscard]] Difference of(std::uint32_t crystal_a, std::uint32_t crystal_b, double ticks) const;
    /// The bin of a difference; `outside` if it is beyond the window.
    [[nodiscard]] std::uint32_t bin_of(double ps) const {
        const double bin = std::floor(ps / bin_ps_ + bins_ / 2.0);
        return bin >= 0 && bin < bins_ ? static_cast<std::uint32_t>(bin) : outside;
    }
    static constexpr std::uint32_t outside = UINT32_MAX;
    [[nodiscard]] std::uint32_t bins() const { return bins_; }
    [[nodiscard]] double bin_ps() const { return bin_ps_; }
    /// Histograms: the first is that of all pairs. The others, one for each BDM, are left out in scanners of
    /// very many.
    [[nodiscard]] std::size_t histograms() const { return 1 + modules_; }
    /// The number of that for the BDM of a crystal.
    [[nodiscard]] std::size_t histogram_of(std::uint32_t crystal) const { return 1 + bdm_of_[crystal]; }
    [[nodiscard]] bool by_module() const { return modules_ != 0; }

  private:
    config::LineGeometry lines_;
    SeenSource source_;
    double tick_ps_;
    double bin_ps_;
    std::uint32_t bins_;
    std::size_t modules_;
    std::vector<std::uint32_t> bdm_of_;  ///< [crystal]
};

/// Counts of pairs, and the sum of the variances that the source makes of them.
struct TimeCounts {
    std::vector<std::uint64_t> bins;
    std::uint64_t pairs = 0;
    double source_ps2 = 0;
};

/// In ps, without the extent of the source. None as gaussian_of(), and where the source makes more than half
/// of the variance.
std::optional<Peak> time_peak_of(const TimeCounts& counts, double bin_ps);

/// Of the whole scanner, and of each BDM; none where it is not known.
struct Resolutions {
    std::optional<Peak> whole;
    std::vector<std::optional<Peak>> modules;  ///< [bdm]; empty: not by BDM
    std::string from;                          ///< what it was found in, or why it is not known
};

}  // namespace petacq::petlm

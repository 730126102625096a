// The image of a point source and its response functions: NEMA NU 4-2008.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "daemon/sinogram/back_projection.hpp"
#include "tools/petlm/nema/runs.hpp"
#include "tools/petlm/nema/slices.hpp"
#include "tools/petlm/nema/widths.hpp"

namespace petacq::nema {

using sinogram::Patch;

inline constexpr std::size_t directions = 3;
inline constexpr std::array<const char*, directions> direction_names = {"radial", "tangential", "axial"};

struct Profile {
    double step_mm = 0;
    std::vector<double> values;
};
struct PointWidths {
    std::array<Widths, directions> widths;
    std::array<Widths, directions> errors;  ///< standard deviations; NaN if unknown
    std::array<Profile, directions> profiles;
    /// Radial and tangential, in the projections; NaN if they do not fall to a half.
    std::array<double, 2> fwhm_of_projection{};
};

/// Slices of the image around a source, as far as they matter, in axes that point from the axis of the
/// scanner to the source (radial) and around it (tangential).
class PointImage {
  public:
    /// Finds the source in the run. Throws petlm::BadInput when there is no peak.
    PointImage(const NemaRun& run, const config::DepthOfInteraction& depth,
               std::uint32_t max_ring_difference);

    [[nodiscard]] const config::Vector3& place_mm() const { return place_; }
    /// That were used.
    [[nodiscard]] double prompts() const { return prompts_; }
    /// Throws petlm::BadInput when the profiles do not fall to a half within the image.
    [[nodiscard]] PointWidths widths() const;
    [[nodiscard]] std::vector<std::string> procedure() const;

  private:
    /// [slice][along the tangent][along the radius]
    [[nodiscard]] std::vector<double> volume_of(const std::vector<double>& counts) const;
    /// Of the projections along lines across the direction `angle`.
    [[nodiscard]] double fwhm_of_projection(const std::vector<double>& counts, double angle) const;
    void find_source(const Sinograms& sinograms);
    void count_lines(const NemaRun& run);
    void count_each_line(const gpu::PairRule& rule, std::uint32_t crystals);
    void turn_lines(const NemaRun& run);
    /// [bin] of slices from `from` up to `to`; in a ring those of any, since they differ by a factor.
    [[nodiscard]] std::vector<double> lines_of(std::size_t from, std::size_t to) const;

    SliceBins bins_;
    double pitch_;
    std::string name_;
    double prompts_ = 0;
    config::Vector3 place_{};
    Patch patch_;
    std::size_t first_slice_ = 0;
    std::size_t slices_ = 0;
    std::vector<double> counts_;  ///< [slice][bin] of these slices
    // Of a ring:
    std::vector<double> lines_of_bin_;    ///< [bin] pairs of crystals of a ring
    std::vector<double> lines_of_slice_;  ///< [slice] pairs of rings, of all slices
    // Of the long form:
    std::vector<double> lines_;  ///< [SliceBins::of] pairs of crystals
};

}  // namespace petacq::nema

// Images of a bed that moved in steps: one of each position, combined into one volume.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "tools/petlm/reconstruction/corrections/bed.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::image {

/// The records of an image, or of one position of the bed.
struct Part {
    daemon::Coverage coverage;
    /// How far the bed is from the middle of its positions, along the axis.
    double bed_mm = 0;
    /// By which its decays are multiplied where they count and not their rate: to those in the time of all
    /// positions together.
    double decays = 1;
};

struct Parts {
    std::vector<Part> list;  ///< at least one
    std::string sentence;    ///< about the bed; empty: it is known not to have moved
};

/// `rotation`: of the scanner. `bed`: combine, or ignore, as if it had not moved. Throws BadInput if the bed
/// moved other than in steps, unless that is ignored.
Parts parts_of(const petlm::ExportSource& source, const std::optional<config::Rotation>& rotation,
               const std::string& bed);

/// "Bed at +10 mm from its middle: ..."
std::string at_position(const Part& part, const std::string& sentence);

/// Adds up the images of the positions where they overlap, each weighted with what it can see.
class CombinedImage {
  public:
    /// `of_part`: the grid of each part. Throws UsageError if the volume of all positions is too long.
    CombinedImage(const Grid& of_part, const std::vector<Part>& parts);
    [[nodiscard]] const Grid& grid() const { return grid_; }

    /// `scale`: by which the image of a part was multiplied since EM, in the unit of the combined image.
    /// `deviation`: the standard deviations of the values of the image; empty: not known, of no part.
    void add(const Part& part, const std::vector<float>& image, const std::vector<float>& deviation,
             const std::vector<float>& sensitivity, double scale);
    /// Voxels that no position sees are 0.
    [[nodiscard]] std::vector<float> finish() const;
    /// Sum of the values of a voxel, each times the weight of its position, and that of the weights.
    [[nodiscard]] double weighted(std::size_t voxel) const { return values_[voxel]; }
    [[nodiscard]] double weight(std::size_t voxel) const { return weights_[voxel]; }
    /// Whether a position sees any voxel of this plane across the axis.
    [[nodiscard]] bool sees_plane(std::uint32_t z) const;
    /// What it takes of memory, without deviations.
    [[nodiscard]] std::uint64_t bytes() const { return 2 * sizeof(double) * grid_.voxels(); }
    /// Standard deviations of the values; empty: not known.
    [[nodiscard]] std::vector<float> deviation() const;

  private:
    Grid of_part_;
    Grid grid_;
    std::vector<double> values_;   ///< times weights
    std::vector<double> squares_;  ///< of deviations times weights; empty: not known
    std::vector<double> weights_;  ///< expected counts for each unit of the value
};

}  // namespace petacq::image

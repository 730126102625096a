// Regions of an image, and the means in them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/petlm/reconstruction/projector/grid.hpp"

namespace petacq::frames {

class Region {
  public:
    /// "name=sphere:x,y,z,r" (mm), or "name=mask.nii" with the voxels above 0.5 of a volume at any place.
    /// A voxel of the image counts by the share of it that lies in the region, of 4 x 4 x 4 places in it.
    /// Throws petlm::UsageError for another text and a region that lies outside of the image, and as
    /// nifti::load() does.
    Region(const std::string& text, const image::Grid& grid);

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] double volume_ml() const { return volume_ml_; }
    /// The share of it that lies in the image.
    [[nodiscard]] double inside() const { return inside_; }
    [[nodiscard]] double mean(std::span<const float> image) const;
    /// Voxels, and the share of each that counts.
    [[nodiscard]] const std::vector<std::pair<std::uint32_t, float>>& shares() const { return shares_; }

  private:
    std::string name_;
    double volume_ml_ = 0;  ///< in the image
    double inside_ = 1;
    std::vector<std::pair<std::uint32_t, float>> shares_;  ///< voxel, share
};

/// Throws as Region does, and petlm::UsageError for a name that two have.
std::vector<Region> regions_of(const std::vector<std::string>& texts, const image::Grid& grid);

}  // namespace petacq::frames

// How much each voxel differs among images of the same records drawn anew.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace petacq::image {

/// Mean and spread of the values of each voxel, of any number of images (Welford 1962). Not thread-safe.
class Spread {
  public:
    explicit Spread(std::size_t voxels) : mean_(voxels), squares_(voxels) {}

    void add(std::span<const float> image);
    /// [voxel] the standard deviation; 0 of less than two images.
    [[nodiscard]] std::vector<float> deviation() const;

  private:
    std::size_t images_ = 0;
    std::vector<float> mean_;
    std::vector<float> squares_;  ///< sum of the squared differences from the mean
};

}  // namespace petacq::image

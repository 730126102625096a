// The voxels of a ray as arrays, which the CPU fills several slabs at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/petlm/reconstruction/projector/tof.hpp"

namespace petacq::image {

/// The voxels that a ray meets, with their weights; not in the order of the ray. Values and order are the
/// same on every processor.
class Trace {
  public:
    /// For rays through this box.
    explicit Trace(const Box& box);

    /// Weights are those of Ray::walk().
    void follow(const Ray& ray);
    /// Weights are those of walk_row().
    void follow(const RowRay& row, const TofWeights& tof);

    [[nodiscard]] std::span<const std::int32_t> voxels() const { return {voxel_.data(), size_}; }
    [[nodiscard]] std::span<const float> weights() const { return {weight_.data(), size_}; }
    /// Calls use(index of the voxel, weight).
    template <class Use>
    void each(Use&& use) const {
        for (std::size_t i = 0; i < size_; ++i)
            use(static_cast<std::size_t>(voxel_[i]), weight_[i]);
    }

  private:
    std::size_t most_;                 // slabs
    std::vector<std::int32_t> voxel_;  // first, second, and third voxels of slabs; then those with a length
    std::vector<float> weight_;
    std::vector<float> middle_;
    std::size_t size_ = 0;
};

}  // namespace petacq::image

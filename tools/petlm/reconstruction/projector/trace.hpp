// The voxels of a ray as arrays, which the CPU fills several slabs at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/petlm/reconstruction/projector/tof.hpp"

namespace petacq::image {

/// The voxels that the lines of a pair meet, with their weights; not in the order of the lines, and a voxel
/// once for each that meets it. Values and order are the same on every processor.
class Trace {
  public:
    /// For lines through this box.
    explicit Trace(const Box& box);

    /// Weights are those of walk_row().
    void follow(const Box& box, const LinesOfPair& lines, const TofWeights& tof = {}, std::int16_t bin = 0);

    [[nodiscard]] std::span<const std::int32_t> voxels() const { return {voxel_.data(), size_}; }
    [[nodiscard]] std::span<const float> weights() const { return {weight_.data(), size_}; }
    /// Calls use(index of the voxel, weight).
    template <class Use>
    void each(Use&& use) const {
        for (std::size_t i = 0; i < size_; ++i)
            use(static_cast<std::size_t>(voxel_[i]), weight_[i]);
    }

  private:
    void add(const Ray& ray);

    std::size_t most_;                 // slabs
    std::vector<std::int32_t> voxel_;  // first, second, and third voxels of slabs; then those with a length
    std::vector<float> weight_;
    std::vector<float> middle_;
    std::size_t size_ = 0;
};

}  // namespace petacq::image

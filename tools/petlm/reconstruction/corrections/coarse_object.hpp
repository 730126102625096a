// The attenuating object in coarse voxels, and the way of photons through them.
#pragma once

#include <cstddef>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petlm/reconstruction/corrections/attenuation.hpp"
#include "tools/petlm/reconstruction/projector/ray.hpp"
#include "tools/petsim/physics/ray.hpp"

namespace petacq::corrections {

/// The part of the object inside the ring, and no further beyond the ends of the scanner than its radius:
/// photons from there hardly ever make a pair. Some ten thousand voxels, each with the mean of its 27 parts.
/// Thread-safe.
class CoarseObject {
  public:
    CoarseObject(const config::Scanner& scanner, const AttenuatingObject& object);

    /// A straight way from a point out of the object.
    class Way {
      public:
        /// The integral of the attenuation at 511 keV.
        [[nodiscard]] double thickness() const { return thickness_; }
        /// The distance from the point at which the integral reaches `part`, below thickness().
        [[nodiscard]] double distance(double part) const;

      private:
        friend class CoarseObject;
        double before_mm_ = 0;  ///< up to the first voxel
        double thickness_ = 0;
        // Of the first, second and third voxels of all slabs (image::Ray). There is room for the longest way.
        std::vector<float> per_mm_;
        std::vector<float> mm_;
        std::size_t slabs_ = 0;
    };
    void trace(const sim::Ray& ray, Way& way) const;

    [[nodiscard]] bool empty() const { return per_mm_.empty(); }
    /// The coefficient at a point, 1/mm at 511 keV.
    [[nodiscard]] double per_mm(const Vector3& point) const;
    /// Along the axis, mm.
    [[nodiscard]] double low() const { return box_.low[2]; }
    [[nodiscard]] double high() const { return box_.low[2] + box_.n[2] * box_.voxel; }

  private:
    image::Box box_{};
    double diagonal_mm_ = 0;
    std::vector<float> per_mm_;  ///< [voxel]
};

}  // namespace petacq::corrections

// What absorbs and scatters photons in the scanner: cylinders, or a map.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/base/sha256.hpp"
#include "tools/nifti/nifti.hpp"
#include "tools/petcal/estimate/pairs/known_source.hpp"

namespace petacq::corrections {

using config::Vector3;

inline constexpr double water_per_cm = 0.096;  ///< linear attenuation of water at 511 keV
/// No substance in a scanner attenuates more: a map with larger values is not one of 1/cm.
inline constexpr double max_per_cm = 10;

struct AttenuatingCylinder {
    estimate::KnownSource shape;  ///< its axis along z
    double per_cm = water_per_cm;
};

/// The sum of its cylinders and maps: where they overlap, their coefficients add up. Thread-safe.
class AttenuatingObject {
  public:
    /// From the lowest to the highest coordinates, mm.
    struct Extent {
        Vector3 low;
        Vector3 high;
    };

    AttenuatingObject() = default;
    /// Each part is the name of a NIfTI map in 1/cm at 511 keV, or "x,y,z,radius,length[,1/cm]", mm: a
    /// cylinder around that centre with its axis along z, water by default. Throws petlm::UsageError naming
    /// the part, what was expected and what was found; config::Error and config::IoError as nifti::load does.
    static AttenuatingObject of(const std::vector<std::string>& parts);

    void add(const AttenuatingCylinder& cylinder) { cylinders_.push_back(cylinder); }
    /// Throws config::Error for negative values and for values above max_per_cm. `name` is for errors.
    void add(nifti::Volume map, const std::string& name);

    /// Moves all of it along the axis of the scanner.
    void move(double mm);

    [[nodiscard]] bool empty() const { return cylinders_.empty() && maps_.empty(); }
    /// The integral of the coefficient along the straight line between two different points; a map has the
    /// same value everywhere in a voxel.
    [[nodiscard]] double integral(const Vector3& from, const Vector3& to) const;
    /// The coefficient at a point, 1/cm at 511 keV.
    [[nodiscard]] double per_cm(const Vector3& point) const;
    /// A box that holds the object; not of an empty one.
    [[nodiscard]] Extent extent() const;
    /// All that integral() depends on.
    void add_to(config::Sha256& digest) const;
    /// "1 cylinder", "map mouse.nii", ...
    [[nodiscard]] std::string text() const;

  private:
    struct Map;
    std::vector<AttenuatingCylinder> cylinders_;
    std::vector<std::shared_ptr<const Map>> maps_;
};

}  // namespace petacq::corrections

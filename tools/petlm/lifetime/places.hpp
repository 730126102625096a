// Where on the line of a pair its positron annihilated, and in which region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/petlm/reconstruction/frames/regions.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"
#include "tools/petlm/reconstruction/projector/tof.hpp"

namespace petacq::lifetime {

/// The activity in each voxel of a grid, in any unit; not negative.
struct ActivityImage {
    image::Grid grid;
    std::vector<float> values;
};
/// What an image shows, the file or the directory that petlm image wrote. Throws petlm::UsageError for one
/// without activity or whose voxels are not cubes around the origin, and as nifti::load() does.
ActivityImage activity_of_image(const std::filesystem::path& image);

/// A place on a line, with the region which has the largest share of the activity along it.
struct PlaceInRegion {
    std::size_t region = 0;
    double from_start_mm = 0;  ///< the mean, by activity and time of flight, of the part in the region
    double share = 0;          ///< of the activity along the line that lies in the region
};

/// Not thread-safe.
class Places {
  public:
    /// Without an image activity is taken as even within the regions, and nowhere else. Without regions all
    /// activity is one. `tof` may be unused. `min_share`: of the activity on a line that its region has.
    Places(const image::Grid& grid, const std::vector<float>* image,
           const std::vector<frames::Region>& regions, const image::TofBins& tof, double min_share);

    /// `difference`: time at the end of the line less that at its start, ticks. Absent where no region has
    /// its share of the activity.
    [[nodiscard]] std::optional<PlaceInRegion> find(const image::Line& line, std::int64_t difference);

  private:
    std::size_t regions_;
    std::vector<float> activity_;    ///< [voxel]
    std::vector<float> in_regions_;  ///< [voxel][region] the part of it that lies in the region
    image::TofBins tof_;
    image::TofTable table_;
    image::TofWeights weights_;
    image::Box box_;
    double min_share_;
    struct LineShare {
        double weight;
        double mm;  ///< sum of weight times place
    };
    std::vector<LineShare> parts_;  ///< [region] of the current line
};

}  // namespace petacq::lifetime

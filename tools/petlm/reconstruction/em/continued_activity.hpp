// The activity in the whole length of an object, of which an image shows a part.
#pragma once

#include <vector>

#include "tools/petlm/reconstruction/corrections/attenuation.hpp"
#include "tools/petlm/reconstruction/corrections/scatter_simulation.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"

namespace petacq::image {

/// What an image shows of the activity.
struct SeenActivity {
    Grid grid;
    std::vector<float> image;      ///< [voxel]
    std::vector<float> sensitive;  ///< [voxel], as sensitivity_of()
    double prompts = 0;            ///< from which the image was made
};

/// What a plane sees, as a share of what the best plane does, if it tells its activity however few the
/// prompts are, and the least that does with any number of them.
inline constexpr double always_told = 0.1;
inline constexpr double least_told = 0.02;

/// Planes that would have some hundred prompts, if all held as much, and those above always_told, are as in
/// the image. Beyond them the activity goes on as it is in the outermost of these: as far as the object does,
/// and no further beyond the ends of the grid than `beyond_mm`. Thread-safe.
corrections::Activity continued_activity(const SeenActivity& seen,
                                         const corrections::AttenuatingObject& object, double beyond_mm);

}  // namespace petacq::image

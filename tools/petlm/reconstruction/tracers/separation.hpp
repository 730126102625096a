// Images of two tracers from images of all pairs and of the pairs of triples.
#pragma once

#include <vector>

#include "tools/petlm/reconstruction/gammas/gamma_chance.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"

namespace petacq::tracers {

/// In the same unit, [voxel].
struct PairImages {
    const std::vector<float>& all;         ///< of all pairs
    const std::vector<float>& coincident;  ///< of the pairs of triples
    const std::vector<float>& delayed;     ///< of those by chance
    double hidden_factor = 1;              ///< petlm::ThirdPhotons::hidden_factor()
};

struct TracerImages {
    std::vector<float> without_gamma;
    std::vector<float> with_gamma;
};

/// With the chance s that a gamma is seen beside a pair that is found, and the chance k that a pair is found
/// although its decay emits gammas: the pairs of the tracer with gammas are
///     pairs = hidden_factor * (coincident - delayed) / s,
/// its activity is pairs / k, and that of the other tracer is all - pairs. Both may be negative by noise.
TracerImages separate(const image::Grid& grid, const PairImages& images, const gammas::GammaChance& chance);

}  // namespace petacq::tracers

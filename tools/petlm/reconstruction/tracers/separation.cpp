#include "tools/petlm/reconstruction/tracers/separation.hpp"

#include <cstddef>

namespace petacq::tracers {

TracerImages separate(const image::Grid& grid, const PairImages& images, const gammas::GammaChance& chance) {
    TracerImages out{images.all, images.coincident};
    std::size_t voxel = 0;
    for (std::size_t z = 0; z < grid.n[2]; ++z) {
        for (std::size_t y = 0; y < grid.n[1]; ++y) {
            for (std::size_t x = 0; x < grid.n[0]; ++x, ++voxel) {
                const double triples = images.hidden_factor *
                                       static_cast<double>(images.coincident[voxel] - images.delayed[voxel]);
                double pairs = 0;
                double kept = 1;
                if (triples != 0) {
                    const config::Vector3 at = {grid.centre(0, x), grid.centre(1, y), grid.centre(2, z)};
                    pairs = triples / chance.seen(at);
                    kept = chance.kept(at);
                }
                out.without_gamma[voxel] -= static_cast<float>(pairs);
                out.with_gamma[voxel] = static_cast<float>(pairs / kept);
            }
        }
    }
    return out;
}

}  // namespace petacq::tracers

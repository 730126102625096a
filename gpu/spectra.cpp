#include "gpu/spectra.hpp"

#include <stdexcept>

namespace petacq::gpu {

void check_shapes(const config::Spectra& counts, const config::Geometry& g) {
    const std::size_t positions = std::size_t{g.position_size} * g.position_size;
    if (counts.floods.size() != g.bdm_count * g.du_count * positions ||
        counts.energies.size() != std::size_t{g.crystal_count()} * config::Spectra::energy_bins) {
        throw std::invalid_argument("spectra: expected the shapes of this scanner");
    }
}

}  // namespace petacq::gpu

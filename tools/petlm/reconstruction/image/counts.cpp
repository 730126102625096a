#include "tools/petlm/reconstruction/image/counts.hpp"

namespace petacq::image {

void ImageCounts::add(std::span<const gpu::Coincidence> records) {
    pairs.add(records);
    for (const gpu::Coincidence& c : records) {
        if (c.kind == gpu::Kind::delayed) {
            delayeds.add(c.crystal_a, c.crystal_b);
        } else {
            ++prompts;
            photopeak.add(c.energy_a);
            photopeak.add(c.energy_b);
        }
    }
}

}  // namespace petacq::image

#include "tools/petlm/reconstruction/image/counts.hpp"

namespace petacq::image {

void ImageCounts::add(std::span<const gpu::Coincidence> records) {
    if (angles_.turns()) {
        numbered_.assign(records.begin(), records.end());
        angles_.number(numbered_);
        pairs.add(numbered_);
    } else {
        pairs.add(records);
    }
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

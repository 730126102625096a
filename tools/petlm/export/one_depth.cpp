#include "tools/petlm/export/one_depth.hpp"

#include <fmt/format.h>

#include <cmath>

namespace petacq::petlm {

void OneDepth::add(const gpu::Coincidence& c) {
    if (c.kind != gpu::Kind::prompt || lines_.depth.is_fixed()) return;
    const config::CrystalPlace& a = lines_.places[c.crystal_a];
    const config::CrystalPlace& b = lines_.places[c.crystal_b];
    const double apart = std::sqrt(config::square_of_distance(a, b));
    if (!(apart > 0)) return;
    for (const config::CrystalPlace* end : {&a, &b}) {
        double cosine = 0;
        for (std::size_t axis = 0; axis < 3; ++axis)
            cosine += (a.front_centre_mm[axis] - b.front_centre_mm[axis]) * end->outward[axis] / apart;
        const double weight = 1 - cosine * cosine;
        weights_ += weight;
        weighted_ += weight * lines_.depth.mm(std::abs(cosine), apart);
    }
}

std::string OneDepth::sentence() const {
    return fmt::format(
        "Photons are taken to interact {:.4g} mm behind the front face of a crystal{}", mm(),
        lines_.depth.is_fixed()
            ? "."
            : ": the mean of the lines of the prompts by the absorption of the crystals, as the "
              "format holds one depth for all lines.");
}

}  // namespace petacq::petlm

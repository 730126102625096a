#include "tools/petlm/export/geometry/one_depth.hpp"

#include <fmt/format.h>

#include <cmath>

#include "config/base/error.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {
namespace {

config::DepthOfInteraction depth_of(const CrystalKind& kind, std::optional<double> depth_mm) {
    config::Dimensions crystals;
    crystals.ring_radius_mm = kind.front_mm;
    crystals.crystal_length_mm = kind.length_mm;
    crystals.crystal_material = kind.material;
    crystals.crystal_attenuation_per_cm = kind.attenuation_per_cm;
    try {
        return config::DepthOfInteraction::of(crystals, depth_mm);
    } catch (const config::Error& error) {
        throw UsageError(error.what());
    }
}

}  // namespace

OneDepth::OneDepth(const config::Scanner& scanner, const CrystalKinds& kinds, std::optional<double> depth_mm)
    : kinds_(kinds) {
    for (const CrystalKind& kind : kinds.kinds())
        depths_.push_back({depth_of(kind, depth_mm)});
    if (depth_mm) return;
    for (std::uint32_t crystal = 0; crystal < scanner.geometry.crystal_count(); ++crystal)
        places_.push_back(config::crystal_place(scanner, crystal));
}

void OneDepth::add(const gpu::Coincidence& c) {
    if (c.kind != gpu::Kind::prompt || places_.empty()) return;
    const config::CrystalPlace& a = places_[c.crystal_a];
    const config::CrystalPlace& b = places_[c.crystal_b];
    const double apart = std::sqrt(config::square_of_distance(a, b));
    if (!(apart > 0)) return;
    for (const std::uint32_t crystal : {c.crystal_a, c.crystal_b}) {
        double cosine = 0;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            cosine +=
                (a.front_centre_mm[axis] - b.front_centre_mm[axis]) * places_[crystal].outward[axis] / apart;
        }
        OfKind& of = depths_[kinds_.kind_of(crystal)];
        const double weight = 1 - cosine * cosine;
        of.weights += weight;
        of.weighted += weight * of.depth.mm(std::abs(cosine), apart);
    }
}

double OneDepth::mm(std::uint32_t kind) const {
    const OfKind& of = depths_[kind];
    return of.weights > 0 ? of.weighted / of.weights : of.depth.typical_mm();
}

std::string OneDepth::sentence() const {
    std::string depths = fmt::format("{:.4g} mm", mm(0));
    if (depths_.size() > 1 && !places_.empty()) {
        depths.clear();
        for (std::uint32_t kind = 0; kind < depths_.size(); ++kind) {
            const CrystalKind& of = kinds_.kinds()[kind];
            depths += fmt::format("{}{:.4g} mm ({} crystals of {} x {} x {} mm, {})", kind == 0 ? "" : ", ",
                                  mm(kind), of.crystals, of.y_mm, of.z_mm, of.length_mm, of.material);
        }
    }
    return fmt::format(
        "Photons are taken to interact {} behind the front face of a crystal{}", depths,
        places_.empty() ? "."
                        : ": the mean of the lines of the prompts by the absorption of the crystals, as the "
                          "format holds one depth for all lines.");
}

}  // namespace petacq::petlm

#include "tools/petlm/export/geometry/crystal_kinds.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "config/scanner/arrangement.hpp"
#include "config/scanner/crystal_material.hpp"

namespace petacq::petlm {
namespace {

double attenuation_of(const config::CrystalLayer& layer) {
    return layer.attenuation_per_cm.value_or(
        config::find_crystal_material(layer.material)->attenuation_per_cm);
}

double distance_of_front(const config::CrystalPlace& place) {
    double along = 0;
    for (std::size_t axis = 0; axis < 2; ++axis)
        along += place.front_centre_mm[axis] * place.outward[axis];
    return std::abs(along);
}

}  // namespace

CrystalKinds::CrystalKinds(const config::Scanner& scanner)
    : crystal_count_(scanner.geometry.crystal_count()) {
    if (scanner.is_ring()) {
        const config::Dimensions& d = scanner.dimensions;
        kinds_.push_back({d.crystal_pitch_y_mm, d.crystal_pitch_z_mm, d.crystal_length_mm, d.crystal_material,
                          config::crystal_material(d).attenuation_per_cm, d.ring_radius_mm, crystal_count_});
        return;
    }
    const config::Arrangement& arrangement = *scanner.arrangement;
    // Sizes of one description that differ by rounding are the same.
    const auto picometres = [](double mm) { return std::llround(mm * 1e9); };
    std::map<std::tuple<long long, long long, long long, std::string, double>, std::uint32_t> known;
    for (std::uint32_t crystal = 0; crystal < crystal_count_; ++crystal) {
        const config::CrystalAddress at = arrangement.address(crystal);
        const config::CrystalLayer& layer = arrangement.layer_of(crystal);
        const double y = layer.y.sizes[at.column];
        const double z = layer.z.sizes[at.row];
        const double attenuation = attenuation_of(layer);
        const auto [kind, fresh] =
            known.emplace(std::tuple(picometres(y), picometres(z), picometres(layer.length_mm),
                                     layer.material, attenuation),
                          static_cast<std::uint32_t>(kinds_.size()));
        if (fresh) {
            kinds_.push_back({y, z, layer.length_mm, layer.material, attenuation,
                              distance_of_front(arrangement.place(crystal)), 0});
        }
        ++kinds_[kind->second].crystals;
        of_crystal_.push_back(kind->second);
    }
    if (kinds_.size() == 1) of_crystal_.clear();
}

std::vector<std::uint32_t> CrystalKinds::in_order() const {
    std::vector<std::uint32_t> order(crystal_count_);
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return kind_of(a) < kind_of(b); });
    return order;
}

}  // namespace petacq::petlm

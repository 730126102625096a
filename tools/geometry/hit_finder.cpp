#include "tools/geometry/hit_finder.hpp"

#include <algorithm>
#include <limits>

#include "config/scanner/arrangement.hpp"
#include "config/scanner/layer_box.hpp"

namespace petacq::geometry {

namespace {

std::variant<RingFinder, ModuleFinder> finder_of(const config::Scanner& scanner) {
    if (scanner.is_ring()) return RingFinder(scanner);
    return ModuleFinder(scanner.arrangement);
}

}  // namespace

HitFinder::HitFinder(const config::Scanner& scanner) : finder_(finder_of(scanner)) {}

std::optional<std::uint32_t> HitFinder::crystal_at(const Vector3& point) const {
    return std::visit([&](const auto& f) { return f.crystal_at(point); }, finder_);
}

double HitFinder::radius_mm() const {
    return ring() != nullptr ? ring()->radius_mm() : modules()->inner_radius_mm();
}

double HitFinder::outer_radius_mm() const {
    return std::visit([](const auto& f) { return f.outer_radius_mm(); }, finder_);
}

double HitFinder::axial_low_mm() const {
    return std::visit([](const auto& f) { return f.axial_low_mm(); }, finder_);
}

double HitFinder::axial_high_mm() const {
    return std::visit([](const auto& f) { return f.axial_high_mm(); }, finder_);
}

double free_radius_mm(const config::Scanner& scanner, double low_z_mm, double high_z_mm) {
    if (scanner.is_ring()) return scanner.dimensions.ring_radius_mm;
    double radius = std::numeric_limits<double>::infinity();
    const config::Arrangement& arrangement = *scanner.arrangement;
    for (const config::LayerBox& box : config::boxes_of(arrangement.modules(), arrangement.types())) {
        double low = std::numeric_limits<double>::infinity();
        double high = -low;
        for (const Vector3& corner : box.corners()) {
            low = std::min(low, corner[2]);
            high = std::max(high, corner[2]);
        }
        if (low < high_z_mm && high > low_z_mm) radius = std::min(radius, config::distance_from_axis(box));
    }
    return radius;
}

}  // namespace petacq::geometry

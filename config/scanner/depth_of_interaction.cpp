#include "config/scanner/depth_of_interaction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "config/base/error.hpp"
#include "config/scanner/arrangement.hpp"
#include "config/scanner/crystal_material.hpp"

namespace petacq::config {

namespace {

/// Between both front faces of a line through the axis, at a right angle to the module.
double typical_apart(const Module& module, const CrystalLayer& layer) {
    double front = layer.front_mm;
    for (std::size_t axis = 0; axis < 3; ++axis)
        front += module.front_mm[axis] * module.outward[axis];
    return 2 * std::max(front, 1.0);
}

}  // namespace

DepthOfInteraction::DepthOfInteraction(const Dimensions& dimensions)
    : length_mm_(dimensions.crystal_length_mm),
      per_mm_(crystal_material(dimensions).attenuation_per_cm / 10),
      typical_mm_(0) {
    typical_mm_ = mm(1, 2 * dimensions.ring_radius_mm);
}

DepthOfInteraction DepthOfInteraction::of(const Dimensions& dimensions, std::optional<double> mm) {
    if (!mm) return DepthOfInteraction(dimensions);
    const double length = dimensions.crystal_length_mm;
    if (!(*mm >= 0 && *mm <= length)) {
        throw Error(
            fmt::format("--depth-mm: expected 0 to {} (the length of a crystal), found {}", length, *mm));
    }
    return fixed(*mm);
}

DepthOfInteraction::DepthOfInteraction(const CrystalLayer& layer, double typical_apart_mm)
    : length_mm_(layer.length_mm), per_mm_(crystal_material(layer).attenuation_per_cm / 10), typical_mm_(0) {
    typical_mm_ = mm(1, typical_apart_mm);
}

DepthOfInteraction DepthOfInteraction::of(const Scanner& scanner, std::optional<double> mm) {
    if (!scanner.arrangement) return of(scanner.dimensions, mm);
    const Arrangement& arrangement = *scanner.arrangement;
    if (mm) {
        double shortest = std::numeric_limits<double>::infinity();
        for (const ModuleType& type : arrangement.types()) {
            for (const CrystalLayer& layer : type.layers)
                shortest = std::min(shortest, layer.length_mm);
        }
        if (!(*mm >= 0 && *mm <= shortest)) {
            throw Error(
                fmt::format("--depth-mm: expected 0 to {} (the length of the shortest crystals), found {}",
                            shortest, *mm));
        }
        return fixed(*mm);
    }
    struct KindCount {
        DepthOfInteraction depth;
        double crystals;
    };
    std::vector<KindCount> kinds;
    double sum = 0;
    for (const Module& module : arrangement.modules()) {
        for (const CrystalLayer& layer : arrangement.type_of(module).layers) {
            const DepthOfInteraction depth(layer, typical_apart(module, layer));
            const double crystals = layer.crystal_count();
            sum += crystals * depth.typical_mm();
            const auto same = std::find_if(kinds.begin(), kinds.end(),
                                           [&](const KindCount& kind) { return kind.depth.same_as(depth); });
            if (same == kinds.end()) {
                kinds.push_back({depth, crystals});
            } else {
                same->crystals += crystals;
            }
        }
    }
    DepthOfInteraction out =
        std::max_element(kinds.begin(), kinds.end(), [](const KindCount& a, const KindCount& b) {
            return a.crystals < b.crystals;
        })->depth;
    out.typical_mm_ = sum / arrangement.crystal_count();
    return out;
}

std::string DepthOfInteraction::name() const {
    return is_fixed() ? fmt::format("{:g}", typical_mm_)
                      : fmt::format("absorption at {:g} per cm", 10 * per_mm_);
}

std::string DepthOfInteraction::text() const {
    return fmt::format("{:.3g} mm behind the front face", typical_mm_) +
           (is_fixed() ? "" : " on lines through the axis, less at an angle, as the crystals absorb them");
}

LineGeometry::LineGeometry(const Scanner& scanner, const DepthOfInteraction& depth_of) : depth(depth_of) {
    places.reserve(scanner.geometry.crystal_count());
    for (std::uint32_t crystal = 0; crystal < scanner.geometry.crystal_count(); ++crystal)
        places.push_back(crystal_place(scanner, crystal));
    if (!scanner.arrangement || depth.is_fixed()) {
        kinds.push_back(depth);
        return;
    }
    for (const Module& module : scanner.arrangement->modules()) {
        for (const CrystalLayer& layer : scanner.arrangement->type_of(module).layers) {
            const DepthOfInteraction of_layer(layer, typical_apart(module, layer));
            const auto same = std::find_if(kinds.begin(), kinds.end(),
                                           [&](const auto& kind) { return kind.same_as(of_layer); });
            kind_of_crystal.insert(kind_of_crystal.end(), layer.crystal_count(),
                                   static_cast<std::uint16_t>(same - kinds.begin()));
            if (same == kinds.end()) kinds.push_back(of_layer);
        }
    }
    if (kinds.size() == 1) kind_of_crystal.clear();
}

void LineGeometry::turn_to(const std::vector<double>& radians) {
    const std::vector<CrystalPlace> still = std::move(places);
    const std::vector<std::uint16_t> kind = kind_of_crystal;
    places.clear();
    places.reserve(still.size() * radians.size());
    kind_of_crystal.clear();
    for (const double angle : radians) {
        for (const CrystalPlace& place : still)
            places.push_back(turned(place, angle));
        kind_of_crystal.insert(kind_of_crystal.end(), kind.begin(), kind.end());
    }
}

}  // namespace petacq::config

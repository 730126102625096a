#include "tools/petlm/export/petsird/module_types.hpp"

#include <cmath>
#include <map>
#include <numbers>
#include <tuple>

#include "config/scanner/arrangement.hpp"

namespace petacq::petsird {
namespace {

/// Modules go along the axis first, then around the ring; so do the elements in a module. STIR expects this.
ModuleType type_of_ring(const config::Scanner& scanner) {
    const config::Geometry& g = scanner.geometry;
    const config::Dimensions& d = scanner.dimensions;
    const std::uint32_t rows = g.blocks.z * g.crystals.z;
    const std::uint32_t columns = g.crystals_per_module_y();
    const auto along_y = [&](std::uint32_t y) {
        return y * d.crystal_pitch_y_mm + y / g.crystals.y * d.block_gap_y_mm;
    };
    const auto along_z = [&](std::uint32_t z) {
        const std::uint32_t block = z / g.crystals.z;
        const std::uint32_t module = block / g.blocks.z;
        return z * d.crystal_pitch_z_mm + (block - module) * d.block_gap_z_mm + module * d.module_gap_z_mm;
    };
    const auto axial = [&](std::uint32_t ring) { return along_z(ring) - along_z(g.rings() - 1) / 2; };
    const double middle_z = (axial(0) + axial(rows - 1)) / 2;

    ModuleType type;
    type.box_mm = {d.crystal_length_mm, d.crystal_pitch_y_mm, d.crystal_pitch_z_mm};
    for (std::uint32_t y = 0; y < columns; ++y) {
        const double tangential = along_y(y) - along_y(columns - 1) / 2;
        for (std::uint32_t z = 0; z < rows; ++z) {
            type.corner_mm.push_back({d.ring_radius_mm, tangential - d.crystal_pitch_y_mm / 2,
                                      axial(z) - middle_z - d.crystal_pitch_z_mm / 2});
        }
    }
    for (std::uint32_t k = 0; k < g.modules_in_ring(); ++k) {
        for (std::uint32_t m = 0; m < g.modules.z; ++m) {
            type.matrices.push_back(turned_about_z(2 * std::numbers::pi * k / g.modules_in_ring(),
                                                   axial(m * rows) - axial(0) + middle_z));
            for (std::uint32_t y = 0; y < columns; ++y)
                for (std::uint32_t z = 0; z < rows; ++z)
                    type.crystals.push_back(k * columns + y + (m * rows + z) * g.crystals_in_ring());
        }
    }
    return type;
}

/// The crystals of a type of module that have the same sizes and material.
struct AlikeCrystals {
    std::array<double, 3> box_mm;
    std::string material;
    std::vector<std::uint32_t> crystals;  ///< in a module
    std::vector<config::Vector3> corner_mm;
};

/// In the order of their first crystals.
std::vector<AlikeCrystals> kinds_in(const config::ModuleType& of) {
    const auto rounded = [](double mm) { return std::llround(mm * 1e9); };
    std::map<std::tuple<long long, long long, long long, std::string>, std::size_t> known;
    std::vector<AlikeCrystals> kinds;
    std::uint32_t crystal = 0;
    for (const config::CrystalLayer& layer : of.layers) {
        for (std::uint32_t y = 0; y < layer.y.count(); ++y) {
            for (std::uint32_t z = 0; z < layer.z.count(); ++z) {
                const std::array<double, 3> box = {layer.length_mm, layer.y.sizes[y], layer.z.sizes[z]};
                const auto [at, is_new] = known.try_emplace(
                    {rounded(box[0]), rounded(box[1]), rounded(box[2]), layer.material}, kinds.size());
                if (is_new) kinds.push_back({box, layer.material, {}, {}});
                AlikeCrystals& kind = kinds[at->second];
                kind.crystals.push_back(crystal++);
                kind.corner_mm.push_back({layer.front_mm, layer.y.centres[y] - kind.box_mm[1] / 2,
                                          layer.z.centres[z] - kind.box_mm[2] / 2});
            }
        }
    }
    return kinds;
}

Matrix matrix_of(const config::Module& m) {
    Matrix matrix{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        matrix[4 * axis] = m.outward[axis];
        matrix[4 * axis + 1] = m.along_y[axis];
        matrix[4 * axis + 2] = m.along_z[axis];
        matrix[4 * axis + 3] = m.front_mm[axis];
    }
    return matrix;
}

std::vector<ModuleType> types_of_arrangement(const config::Arrangement& arrangement) {
    std::vector<ModuleType> types;
    for (std::uint32_t number = 0; number < arrangement.types().size(); ++number) {
        const config::ModuleType& of = arrangement.types()[number];
        for (AlikeCrystals& kind : kinds_in(of)) {
            ModuleType type;
            type.box_mm = kind.box_mm;
            type.material = kind.material;
            type.corner_mm = std::move(kind.corner_mm);
            type.time_resolution_ps = of.time_resolution_ps;
            type.energy_resolution = of.energy_resolution;
            for (const config::Module& module : arrangement.modules()) {
                if (module.type != number) continue;
                type.matrices.push_back(matrix_of(module));
                for (const std::uint32_t crystal : kind.crystals)
                    type.crystals.push_back(module.first_crystal + crystal);
            }
            if (type.modules() != 0) types.push_back(std::move(type));
        }
    }
    return types;
}

}  // namespace

std::vector<ModuleType> types_of(const config::Scanner& scanner) {
    if (scanner.arrangement) return types_of_arrangement(*scanner.arrangement);
    std::vector<ModuleType> types;
    types.push_back(type_of_ring(scanner));
    return types;
}

Matrix turned_about_z(double radians, double z_mm) {
    const double c = std::cos(radians);
    const double s = std::sin(radians);
    return {c, 0 - s, 0, 0, s, c, 0, 0, 0, 0, 1, z_mm};  // no -0
}

}  // namespace petacq::petsird

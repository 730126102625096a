#include "config/scanner/arrangement.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <utility>

namespace petacq::config {

namespace {

/// `blocks` of `per_block` crystals of equal pitch, with gaps between blocks.
CrystalRow equal_row(std::uint32_t blocks, std::uint32_t per_block, double pitch, double gap) {
    CrystalRow row;
    const auto along = [&](std::uint32_t i) {
        const std::uint32_t gaps = i / per_block;
        return i * pitch + gaps * gap;
    };
    const double middle = along(blocks * per_block - 1) / 2;
    for (std::uint32_t i = 0; i < blocks * per_block; ++i) {
        row.centres.push_back(along(i) - middle);
        row.sizes.push_back(pitch);
    }
    return row;
}

}  // namespace

std::uint32_t ModuleType::crystal_count() const {
    std::uint32_t count = 0;
    for (const CrystalLayer& layer : layers)
        count += layer.crystal_count();
    return count;
}

double ModuleType::length_mm() const {
    double end = 0;
    for (const CrystalLayer& layer : layers)
        end = std::max(end, layer.front_mm + layer.length_mm);
    return end;
}

Arrangement::Arrangement(std::vector<ModuleType> types, std::vector<Module> modules)
    : types_(std::move(types)), modules_(std::move(modules)) {
    for (Module& module : modules_) {
        module.first_crystal = crystal_count_;
        crystal_count_ += types_.at(module.type).crystal_count();
    }
}

Arrangement::Arrangement(const Geometry& g, const Dimensions& d)
    : crystal_count_(g.crystal_count()), ring_(g) {
    CrystalLayer layer;
    layer.y = equal_row(g.blocks.y, g.crystals.y, d.crystal_pitch_y_mm, d.block_gap_y_mm);
    layer.z = equal_row(g.blocks.z, g.crystals.z, d.crystal_pitch_z_mm, d.block_gap_z_mm);
    layer.length_mm = d.crystal_length_mm;
    layer.material = d.crystal_material;
    layer.attenuation_per_cm = d.crystal_attenuation_per_cm;
    types_.push_back({"module", {std::move(layer)}, {}, {}});

    const std::uint32_t around = g.modules_in_ring();
    const std::uint32_t rows = g.blocks.z * g.crystals.z;
    const double module_pitch =
        rows * d.crystal_pitch_z_mm + (g.blocks.z - 1) * d.block_gap_z_mm + d.module_gap_z_mm;
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm) {
        const std::uint32_t k = bdm % around;
        const std::uint32_t ring = bdm / around;
        const double angle = 2 * std::numbers::pi * k / around;
        const double c = std::cos(angle);
        const double s = std::sin(angle);
        Module m;
        m.outward = {c, s, 0};
        m.along_y = {-s, c, 0};
        m.along_z = {0, 0, 1};
        const double z = (ring - (g.modules.z - 1) / 2.0) * module_pitch;
        m.front_mm = {d.ring_radius_mm * c, d.ring_radius_mm * s, z};
        m.around = {k, around};
        modules_.push_back(std::move(m));
    }
}

std::uint32_t Arrangement::crystal(const CrystalAddress& a) const {
    if (ring_) {
        const std::uint32_t around = ring_->modules_in_ring();
        const std::uint32_t rows = ring_->blocks.z * ring_->crystals.z;
        return a.module % around * ring_->crystals_per_module_y() + a.column +
               (a.module / around * rows + a.row) * ring_->crystals_in_ring();
    }
    const Module& module = modules_[a.module];
    const std::vector<CrystalLayer>& layers = types_[module.type].layers;
    std::uint32_t number = module.first_crystal;
    for (std::uint32_t i = 0; i < a.layer; ++i)
        number += layers[i].crystal_count();
    return number + a.column * layers[a.layer].z.count() + a.row;
}

CrystalAddress Arrangement::address(std::uint32_t crystal) const {
    if (crystal >= crystal_count_) {
        throw std::out_of_range("crystal " + std::to_string(crystal) + " of a scanner with " +
                                std::to_string(crystal_count_));
    }
    if (ring_) {
        const std::uint32_t in_ring = crystal % ring_->crystals_in_ring();
        const std::uint32_t ring = crystal / ring_->crystals_in_ring();
        const std::uint32_t columns = ring_->crystals_per_module_y();
        const std::uint32_t rows = ring_->blocks.z * ring_->crystals.z;
        return {in_ring / columns + ring / rows * ring_->modules_in_ring(), 0, in_ring % columns,
                ring % rows};
    }
    const auto after = std::upper_bound(modules_.begin(), modules_.end(), crystal,
                                        [](std::uint32_t c, const Module& m) { return c < m.first_crystal; });
    const Module& module = *(after - 1);
    CrystalAddress a;
    a.module = static_cast<std::uint32_t>(after - 1 - modules_.begin());
    std::uint32_t left = crystal - module.first_crystal;
    const std::vector<CrystalLayer>& layers = types_[module.type].layers;
    for (; left >= layers[a.layer].crystal_count(); ++a.layer)
        left -= layers[a.layer].crystal_count();
    a.column = left / layers[a.layer].z.count();
    a.row = left % layers[a.layer].z.count();
    return a;
}

CrystalPlace Arrangement::place(std::uint32_t crystal) const {
    const CrystalAddress a = address(crystal);
    const Module& module = modules_[a.module];
    const CrystalLayer& layer = types_[module.type].layers[a.layer];
    const double y = layer.y.centres[a.column];
    const double z = layer.z.centres[a.row];
    CrystalPlace place{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        place.front_centre_mm[axis] = module.front_mm[axis] + layer.front_mm * module.outward[axis] +
                                      y * module.along_y[axis] + z * module.along_z[axis];
    }
    place.outward = module.outward;
    return place;
}

const CrystalLayer& Arrangement::layer_of(std::uint32_t crystal) const {
    const CrystalAddress a = address(crystal);
    return types_[modules_[a.module].type].layers[a.layer];
}

std::shared_ptr<const Arrangement> arrangement_of(const Scanner& scanner) {
    if (scanner.arrangement) return scanner.arrangement;
    return std::make_shared<const Arrangement>(scanner.geometry, scanner.dimensions);
}

}  // namespace petacq::config

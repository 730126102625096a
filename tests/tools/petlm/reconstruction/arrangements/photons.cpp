#include "tests/tools/petlm/reconstruction/arrangements/photons.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "config/scanner/crystal_material.hpp"

namespace petacq::test {

namespace {

double dot(const config::Vector3& a, const config::Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

}  // namespace

config::Scanner example_scanner(const std::string& name) {
    return config::load_scanner(PETACQ_SOURCE_DIR "/config/examples/scanners/" + name + ".scanner.json");
}

Photons::Photons(const config::Scanner& scanner, std::uint64_t seed)
    : arrangement_(*scanner.arrangement), random_(seed) {
    for (const config::Module& module : arrangement_.modules()) {
        Solid& solid = solids_.emplace_back();
        solid.middle = module.front_mm;
        const config::ModuleType& type = arrangement_.type_of(module);
        double squares = std::pow(type.length_mm() / 2, 2);
        double y = 0;
        double z = 0;
        for (const config::CrystalLayer& layer : type.layers) {
            solid.per_mm.push_back(config::crystal_material(layer).attenuation_per_cm / 10);
            y = std::max({y, -layer.y.low(), layer.y.high()});
            z = std::max({z, -layer.z.low(), layer.z.high()});
        }
        squares += y * y + z * z;
        for (std::size_t axis = 0; axis < 3; ++axis)
            solid.middle[axis] += type.length_mm() / 2 * module.outward[axis];
        solid.radius = std::sqrt(squares) + 1e-6;
    }
}

config::Vector3 Photons::direction() {
    const double z = 2 * uniform() - 1;
    const double angle = 2 * std::numbers::pi * uniform();
    const double across = std::sqrt(1 - z * z);
    return {across * std::cos(angle), across * std::sin(angle), z};
}

config::Vector3 Photons::in_cylinder(double radius, double length) {
    const double r = radius * std::sqrt(uniform());
    const double angle = 2 * std::numbers::pi * uniform();
    return {r * std::cos(angle), r * std::sin(angle), length * (uniform() - 0.5)};
}

std::optional<std::uint32_t> Photons::absorbed(const config::Vector3& from,
                                               const config::Vector3& direction) {
    parts_.clear();
    for (std::uint32_t m = 0; m < solids_.size(); ++m)
        cross(m, from, direction);
    std::sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
    double left = -std::log1p(-uniform());
    for (const Part& part : parts_) {
        double at = part.begin;
        while (at + left / part.per_mm < part.end) {
            at += left / part.per_mm;
            if (const auto crystal = crystal_at(part, from, direction, at)) return crystal;
            left = -std::log1p(-uniform());  // a gap holds no matter
        }
        left -= (part.end - at) * part.per_mm;
    }
    return std::nullopt;
}

std::vector<FoundPair> Photons::pairs(std::size_t decays, const gpu::PairRule& rule,
                                      const std::function<config::Vector3()>& place) {
    std::vector<FoundPair> out;
    for (std::size_t i = 0; i < decays; ++i) {
        const config::Vector3 from = place();
        const config::Vector3 u = direction();
        const auto a = absorbed(from, u);
        if (!a) continue;
        const auto b = absorbed(from, {-u[0], -u[1], -u[2]});
        if (b && rule.good(*a, *b)) out.push_back({std::min(*a, *b), std::max(*a, *b)});
    }
    return out;
}

void Photons::cross(std::uint32_t m, const config::Vector3& from, const config::Vector3& u) {
    const Solid& solid = solids_[m];
    const config::Vector3 way = {solid.middle[0] - from[0], solid.middle[1] - from[1],
                                 solid.middle[2] - from[2]};
    const double along = dot(way, u);
    const double beside = dot(way, way) - along * along;
    if (along < -solid.radius || beside > solid.radius * solid.radius) return;
    const config::Module& module = arrangement_.modules()[m];
    const config::Vector3 at = {from[0] - module.front_mm[0], from[1] - module.front_mm[1],
                                from[2] - module.front_mm[2]};
    const double start[3] = {dot(at, module.outward), dot(at, module.along_y), dot(at, module.along_z)};
    const double step[3] = {dot(u, module.outward), dot(u, module.along_y), dot(u, module.along_z)};
    const auto& layers = arrangement_.type_of(module).layers;
    for (std::uint32_t i = 0; i < layers.size(); ++i) {
        const config::CrystalLayer& layer = layers[i];
        const double low[3] = {layer.front_mm, layer.y.low(), layer.z.low()};
        const double high[3] = {layer.front_mm + layer.length_mm, layer.y.high(), layer.z.high()};
        double in = 0;
        double out = std::numeric_limits<double>::infinity();
        for (int axis = 0; axis < 3; ++axis) {
            const double one = (low[axis] - start[axis]) / step[axis];
            const double other = (high[axis] - start[axis]) / step[axis];
            in = std::max(in, std::min(one, other));
            out = std::min(out, std::max(one, other));
        }
        if (in < out) parts_.push_back({in, out, solid.per_mm[i], m, i});
    }
}

std::optional<std::uint32_t> Photons::crystal_at(const Part& part, const config::Vector3& from,
                                                 const config::Vector3& u, double distance) const {
    const config::Module& module = arrangement_.modules()[part.module];
    config::Vector3 at{};
    for (std::size_t axis = 0; axis < 3; ++axis)
        at[axis] = from[axis] + distance * u[axis] - module.front_mm[axis];
    const config::CrystalLayer& layer = arrangement_.type_of(module).layers[part.layer];
    const auto find = [](const config::CrystalRow& row, double place) {
        std::uint32_t i = 0;
        while (i < row.count() && std::abs(place - row.centres[i]) > row.sizes[i] / 2)
            ++i;
        return i;
    };
    const std::uint32_t column = find(layer.y, dot(at, module.along_y));
    const std::uint32_t row = find(layer.z, dot(at, module.along_z));
    if (column == layer.y.count() || row == layer.z.count()) return std::nullopt;
    return arrangement_.crystal({part.module, part.layer, column, row});
}

}  // namespace petacq::test

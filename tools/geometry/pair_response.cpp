#include "tools/geometry/pair_response.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>

#include "config/scanner/crystal_material.hpp"
#include "tools/geometry/vector.hpp"

namespace petacq::geometry {
namespace {

constexpr int nodes = 4;              // of a face
constexpr double min_cosine = 0.1;    // lines along a face meet it
constexpr double touching_mm = 0.01;  // modules that stand side by side are not in each other's way

Vector3 minus(const Vector3& a, const Vector3& b) {
    return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}

/// The length of the part of a segment that lies in a box.
double length_in(const Vector3& low, const Vector3& high, const Vector3& from, const Vector3& to) {
    double in = 0;
    double out = 1;
    double squares = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const double along = to[axis] - from[axis];
        squares += along * along;
        if (along == 0) {
            if (from[axis] < low[axis] || from[axis] >= high[axis]) return 0;
            continue;
        }
        const double one = (low[axis] - from[axis]) / along;
        const double other = (high[axis] - from[axis]) / along;
        in = std::max(in, std::min(one, other));
        out = std::min(out, std::max(one, other));
    }
    return out > in ? (out - in) * std::sqrt(squares) : 0;
}

}  // namespace

PairResponse::PairResponse(std::shared_ptr<const config::Arrangement> arrangement, bool deep)
    : arrangement_(std::move(arrangement)), deep_(deep) {
    for (const config::ModuleType& type : arrangement_->types()) {
        std::vector<Slab>& of_type = slabs_.emplace_back();
        for (const config::CrystalLayer& layer : type.layers) {
            of_type.push_back({{layer.front_mm, layer.y.low(), layer.z.low()},
                               {layer.front_mm + layer.length_mm, layer.y.high(), layer.z.high()},
                               config::crystal_material(layer).attenuation_per_cm / 10});
        }
    }
    parts_.reserve(arrangement_->crystal_count());
    for (std::uint32_t crystal = 0; crystal < arrangement_->crystal_count(); ++crystal) {
        const config::CrystalAddress at = arrangement_->address(crystal);
        const config::CrystalLayer& layer =
            arrangement_->type_of(arrangement_->modules()[at.module]).layers[at.layer];
        parts_.push_back({at.module, at.layer, static_cast<float>(layer.y.centres[at.column]),
                          static_cast<float>(layer.z.centres[at.row]),
                          static_cast<float>(layer.y.sizes[at.column] / 2),
                          static_cast<float>(layer.z.sizes[at.row] / 2)});
    }
    find_in_the_way();
}

/// A module is in no line's way if no front face of another has a point behind the plane of its own.
void PairResponse::find_in_the_way() {
    const std::vector<config::Module>& modules = arrangement_->modules();
    std::vector<Vector3> corners;
    for (const config::Module& module : modules) {
        for (const Slab& slab : slabs_[module.type]) {
            for (const double y : {slab.low[1], slab.high[1]}) {
                for (const double z : {slab.low[2], slab.high[2]}) {
                    Vector3 at{};
                    for (std::size_t axis = 0; axis < 3; ++axis)
                        at[axis] =
                            module.front_mm[axis] + y * module.along_y[axis] + z * module.along_z[axis];
                    corners.push_back(at);
                }
            }
        }
    }
    // Few directions occur, whatever the number of modules.
    std::map<std::array<std::int64_t, 3>, double> furthest;  // [direction]
    for (std::uint32_t m = 0; m < modules.size(); ++m) {
        const config::Module& module = modules[m];
        std::array<std::int64_t, 3> direction{};
        for (std::size_t axis = 0; axis < 3; ++axis)
            direction[axis] = std::llround(module.outward[axis] * 1e9);
        const auto [found, is_new] = furthest.try_emplace(direction, -1e300);
        if (is_new) {
            for (const Vector3& corner : corners)
                found->second = std::max(found->second, dot(corner, module.outward));
        }
        if (!(found->second > dot(module.front_mm, module.outward) + touching_mm)) continue;
        Vector3 low = slabs_[module.type].front().low;
        Vector3 high = slabs_[module.type].front().high;
        for (const Slab& slab : slabs_[module.type]) {
            for (std::size_t axis = 0; axis < 3; ++axis) {
                low[axis] = std::min(low[axis], slab.low[axis]);
                high[axis] = std::max(high[axis], slab.high[axis]);
            }
        }
        InTheWay one{m, module.front_mm, std::sqrt(dot(minus(high, low), minus(high, low))) / 2};
        for (std::size_t axis = 0; axis < 3; ++axis) {
            one.middle[axis] +=
                ((low[0] + high[0]) * module.outward[axis] + (low[1] + high[1]) * module.along_y[axis] +
                 (low[2] + high[2]) * module.along_z[axis]) /
                2;
        }
        in_the_way_.push_back(one);
    }
}

double PairResponse::area(std::uint32_t crystal) const {
    const CrystalFace& part = parts_[crystal];
    return 4 * double{part.half_y} * double{part.half_z};
}

Vector3 PairResponse::node(const CrystalFace& part, int index) const {
    const config::Module& module = arrangement_->modules()[part.module];
    const double front = slabs_[module.type][part.layer].low[0];
    const double y = double{part.y} + (index % 2 == 0 ? -1 : 1) * double{part.half_y} / std::numbers::sqrt3;
    const double z = double{part.z} + (index / 2 == 0 ? -1 : 1) * double{part.half_z} / std::numbers::sqrt3;
    Vector3 at{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        at[axis] = module.front_mm[axis] + front * module.outward[axis] + y * module.along_y[axis] +
                   z * module.along_z[axis];
    }
    return at;
}

Vector3 PairResponse::in_module(const config::Module& module, const Vector3& point) const {
    const Vector3 from_front = minus(point, module.front_mm);
    return {dot(from_front, module.outward), dot(from_front, module.along_y),
            dot(from_front, module.along_z)};
}

double PairResponse::thickness_before(const CrystalFace& part, const Vector3& from, const Vector3& to) const {
    const config::Module& module = arrangement_->modules()[part.module];
    const std::vector<Slab>& slabs = slabs_[module.type];
    const Vector3 a = in_module(module, from);
    const Vector3 b = in_module(module, to);
    double sum = 0;
    for (std::uint32_t layer = 0; layer < part.layer; ++layer)
        sum += slabs[layer].per_mm * length_in(slabs[layer].low, slabs[layer].high, a, b);
    return sum;
}

bool PairResponse::near(const InTheWay& one, const Vector3& from, const Vector3& to, double margin) {
    const Vector3 along = minus(to, from);
    const Vector3 middle = minus(one.middle, from);
    const double nearest = std::clamp(dot(middle, along) / dot(along, along), 0.0, 1.0);
    double apart = 0;
    for (std::size_t axis = 0; axis < 3; ++axis)
        apart += std::pow(middle[axis] - nearest * along[axis], 2);
    const double reach = one.radius + margin;
    return apart <= reach * reach;
}

double PairResponse::thickness_in(const InTheWay& one, const Vector3& from, const Vector3& to) const {
    const config::Module& module = arrangement_->modules()[one.module];
    const Vector3 begin = in_module(module, from);
    const Vector3 end = in_module(module, to);
    double sum = 0;
    for (const Slab& slab : slabs_[module.type])
        sum += slab.per_mm * length_in(slab.low, slab.high, begin, end);
    return sum;
}

double PairResponse::of(std::uint32_t a, std::uint32_t b) const {
    if (!deep_) return area(a) * area(b);
    const std::uint32_t first = std::min(a, b);
    const std::uint32_t second = std::max(a, b);
    const CrystalFace& one = parts_[first];
    const CrystalFace& other = parts_[second];
    const Vector3 from = arrangement_->place(first).front_centre_mm;
    const Vector3 to = arrangement_->place(second).front_centre_mm;
    const Vector3 along = minus(to, from);
    const double apart = std::sqrt(dot(along, along));
    double response = area(a) * area(b);
    for (const CrystalFace* part : {&one, &other}) {
        const config::Module& module = arrangement_->modules()[part->module];
        const Slab& slab = slabs_[module.type][part->layer];
        const double cosine = std::max(std::abs(dot(along, module.outward)) / apart, min_cosine);
        response *= -std::expm1(-slab.per_mm * (slab.high[0] - slab.low[0]) / cosine);
    }
    double thickness[nodes] = {};  // NOLINT(modernize-avoid-c-arrays)
    bool any = false;
    if (one.layer != 0 || other.layer != 0) {
        any = true;
        for (int i = 0; i < nodes; ++i) {
            thickness[i] = thickness_before(one, node(one, i), node(other, i)) +
                           thickness_before(other, node(one, i), node(other, i));
        }
    }
    const double margin = std::hypot(one.half_y, one.half_z) + std::hypot(other.half_y, other.half_z);
    for (const InTheWay& module : in_the_way_) {
        if (module.module == one.module || module.module == other.module || !near(module, from, to, margin))
            continue;
        any = true;
        for (int i = 0; i < nodes; ++i)
            thickness[i] += thickness_in(module, node(one, i), node(other, i));
    }
    if (!any) return response;
    double passed = 0;
    for (const double of_line : thickness)
        passed += std::exp(-of_line);
    return response * passed / nodes;
}

}  // namespace petacq::geometry

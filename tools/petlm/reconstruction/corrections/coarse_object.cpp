#include "tools/petlm/reconstruction/corrections/coarse_object.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/geometry/bore.hpp"

namespace petacq::corrections {
namespace {

constexpr double voxels = 40'000;  // of the box around the object
constexpr int parts = 3;           // of a voxel, along each axis

image::Point as_point(const Vector3& v) {
    return {{static_cast<float>(v[0]), static_cast<float>(v[1]), static_cast<float>(v[2])}};
}

/// The voxels of all slabs of a line: `part` first ones, as many second and third ones.
struct Crossings {
    float* per_mm;
    float* mm;
    std::size_t part;
};

/// Voxels that are met with a length of 0 are kept: which these are, no processor foresees.
inline __attribute__((always_inline)) void fill(const image::Ray& of, const float* per_mm,
                                                const Crossings& out) {
    const image::Ray line = of;  // a copy, which nothing that is written below can change
    const Crossings one = out;
    const Crossings two = {one.per_mm + one.part, one.mm + one.part, one.part};
    const Crossings three = {two.per_mm + one.part, two.mm + one.part, one.part};
#pragma GCC ivdep
    for (std::int32_t i = 0; i < line.slabs(); ++i) {
        const image::Ray::Slab slab = line.slab(i);
        one.per_mm[i] = per_mm[slab.voxel[0]];
        two.per_mm[i] = per_mm[slab.voxel[1]];
        three.per_mm[i] = per_mm[slab.voxel[2]];
        one.mm[i] = slab.mm[0] > 0 ? slab.mm[0] : 0;
        two.mm[i] = slab.mm[1] > 0 ? slab.mm[1] : 0;
        three.mm[i] = slab.mm[2] > 0 ? slab.mm[2] : 0;
    }
}

void fill_plain(const image::Ray& line, const float* per_mm, const Crossings& out) {
    fill(line, per_mm, out);
}

#ifdef __x86_64__
// The same with eight slabs at a time.
__attribute__((target("avx2"))) void fill_avx2(const image::Ray& line, const float* per_mm,
                                               const Crossings& out) {
    fill(line, per_mm, out);
}
const auto fill_here = __builtin_cpu_supports("avx2") != 0 ? fill_avx2 : fill_plain;
#else
const auto fill_here = fill_plain;
#endif

double thickness_of(float per_mm, float mm) {
    return static_cast<double>(per_mm) * static_cast<double>(mm);
}

}  // namespace

CoarseObject::CoarseObject(const config::Scanner& scanner, const AttenuatingObject& object) {
    const geometry::Bore bore = geometry::bore_of(scanner);
    const double radius = bore.furthest_mm;
    const Vector3 most = {radius, radius, bore.last_centre_mm + radius};
    AttenuatingObject::Extent extent = object.extent();
    double volume = 1;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        extent.low[axis] = std::clamp(extent.low[axis], -most[axis], most[axis]);
        extent.high[axis] = std::clamp(extent.high[axis], -most[axis], most[axis]);
        volume *= extent.high[axis] - extent.low[axis];
    }
    if (!(volume > 0)) return;
    box_.voxel = std::cbrt(volume / voxels);
    double squares = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const double length = extent.high[axis] - extent.low[axis];
        box_.n[axis] = std::max(1, static_cast<std::int32_t>(std::ceil(length / box_.voxel)));
        box_.low[axis] = (extent.low[axis] + extent.high[axis] - box_.n[axis] * box_.voxel) / 2;
        squares += std::pow(box_.n[axis] * box_.voxel, 2);
    }
    diagonal_mm_ = std::sqrt(squares);
    per_mm_.reserve(static_cast<std::size_t>(box_.n[0]) * static_cast<std::size_t>(box_.n[1]) *
                    static_cast<std::size_t>(box_.n[2]));
    const auto place = [&](std::size_t axis, int voxel, int part) {
        return box_.low[axis] + box_.voxel * (voxel + (part + 0.5) / parts);
    };
    for (int z = 0; z < box_.n[2]; ++z) {
        for (int y = 0; y < box_.n[1]; ++y) {
            for (int x = 0; x < box_.n[0]; ++x) {
                double sum = 0;
                for (int part = 0; part < parts * parts * parts; ++part) {
                    sum += object.per_cm({place(0, x, part % parts), place(1, y, part / parts % parts),
                                          place(2, z, part / parts / parts)});
                }
                per_mm_.push_back(static_cast<float>(sum / (parts * parts * parts) / 10));
            }
        }
    }
}

double CoarseObject::per_mm(const Vector3& point) const {
    std::size_t index = 0;
    for (std::size_t axis = 3; axis-- > 0;) {
        const double at = (point[axis] - box_.low[axis]) / box_.voxel;
        if (!(at >= 0 && at < box_.n[axis])) return 0;
        index = index * static_cast<std::size_t>(box_.n[axis]) + static_cast<std::size_t>(at);
    }
    return static_cast<double>(per_mm_[index]);
}

void CoarseObject::trace(const sim::Ray& ray, Way& way) const {
    way.before_mm_ = 0;
    // The point may lie beside the box.
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const double d = ray.direction[axis];
        const double side = box_.low[axis] + (d < 0 ? box_.n[axis] * box_.voxel : 0);
        if (d != 0) way.before_mm_ = std::max(way.before_mm_, (side - ray.at[axis]) / d);
    }
    sim::Ray from = ray;
    from.advance(way.before_mm_);
    sim::Ray to = from;
    to.advance(diagonal_mm_ + box_.voxel);
    const image::Ray line(box_, as_point(from.at), as_point(to.at));
    const auto most = static_cast<std::size_t>(std::max({box_.n[0], box_.n[1], box_.n[2]}));
    if (way.mm_.size() != 3 * most) {
        way.per_mm_.resize(3 * most);
        way.mm_.resize(3 * most);
    }
    fill_here(line, per_mm_.data(), {way.per_mm_.data(), way.mm_.data(), most});
    way.slabs_ = static_cast<std::size_t>(line.slabs());
    double thickness = 0;
    for (std::size_t i = 0; i < way.slabs_; ++i)
        for (std::size_t k = 0; k < 3; ++k)
            thickness += thickness_of(way.per_mm_[k * most + i], way.mm_[k * most + i]);
    way.thickness_ = thickness;
}

double CoarseObject::Way::distance(double part) const {
    const std::size_t most = mm_.size() / 3;
    double mm = before_mm_;
    for (std::size_t i = 0; i < slabs_; ++i) {
        for (std::size_t at = i; at < mm_.size(); at += most) {
            const double thickness = thickness_of(per_mm_[at], mm_[at]);
            if (part < thickness) return mm + part / static_cast<double>(per_mm_[at]);
            part -= thickness;
            mm += static_cast<double>(mm_[at]);
        }
    }
    return mm;
}

}  // namespace petacq::corrections

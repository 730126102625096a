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
    way.thickness_ = 0;
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
    const auto slabs = static_cast<std::size_t>(line.slabs());
    if (way.crossings_.size() < 3 * slabs) way.crossings_.resize(3 * slabs);
    // Voxels that are met with a length of 0 are kept: which these are, no processor foresees.
    Way::Crossing* crossing = way.crossings_.data();
    for (std::int32_t i = 0; i < line.slabs(); ++i) {
        const image::Ray::Slab slab = line.slab(i);
        for (int k = 0; k < 3; ++k) {
            *crossing = {per_mm_[static_cast<std::size_t>(slab.voxel[k])], std::max(slab.mm[k], 0.0F)};
            way.thickness_ += crossing->thickness();
            ++crossing;
        }
    }
    way.count_ = 3 * slabs;
}

double CoarseObject::Way::distance(double part) const {
    double mm = before_mm_;
    for (std::size_t i = 0; i < count_; ++i) {
        const Crossing& crossing = crossings_[i];
        const double thickness = crossing.thickness();
        if (part < thickness) return mm + part / static_cast<double>(crossing.per_mm);
        part -= thickness;
        mm += static_cast<double>(crossing.mm);
    }
    return mm;
}

}  // namespace petacq::corrections

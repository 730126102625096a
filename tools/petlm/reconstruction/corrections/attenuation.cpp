#include "tools/petlm/reconstruction/corrections/attenuation.hpp"

#include <fmt/format.h>

#include <Eigen/LU>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "config/base/error.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/projector/ray.hpp"

namespace petacq::corrections {
namespace {

constexpr const char* form = "x,y,z,radius,length[,1/cm] in mm, or a NIfTI map in 1/cm";

/// The numbers of a list; none if it is something else.
std::optional<std::vector<double>> numbers_of(const std::string& list) {
    std::vector<double> numbers;
    const char* at = list.data();
    const char* const end = at + list.size();
    for (;;) {
        double number = 0;
        const auto [next, error] = std::from_chars(at, end, number);
        if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
        numbers.push_back(number);
        if (next == end) return numbers;
        if (*next != ',') return std::nullopt;
        at = next + 1;
    }
}

AttenuatingCylinder cylinder_of(const std::string& part, const std::vector<double>& v) {
    const auto expect = [&](bool good, const std::string& what) {
        if (!good) throw petlm::UsageError("--attenuation " + part + ": expected " + what);
    };
    expect(v.size() == 5 || v.size() == 6, form);
    expect(v[3] > 0 && v[4] > 0, "a radius and a length above 0");
    AttenuatingCylinder out;
    out.shape = {{v[0], v[1], v[2] - v[4] / 2}, {v[0], v[1], v[2] + v[4] / 2}, v[3]};
    if (v.size() == 6) out.per_cm = v[5];
    expect(out.per_cm > 0 && out.per_cm <= max_per_cm,
           fmt::format("more than 0 and at most {} per cm", max_per_cm));
    return out;
}

}  // namespace

/// A map, and the way from a point of the scanner to its voxels: voxel i reaches from i to i + 1.
struct AttenuatingObject::Map {
    nifti::Volume volume;
    std::string name;
    image::Box box{};
    Eigen::Matrix3d to_voxels;
    Eigen::Vector3d first;

    Map(nifti::Volume map, std::string of) : volume(std::move(map)), name(std::move(of)) {
        Eigen::Matrix3d steps;
        for (int i = 0; i < 3; ++i) {
            const auto axis = static_cast<std::size_t>(i);
            box.low[i] = 0;
            box.n[i] = static_cast<std::int32_t>(volume.n[axis]);
            steps.col(i) = Eigen::Map<const Eigen::Vector3d>(volume.step[axis].data());
        }
        box.voxel = 1;
        to_voxels = steps.inverse();
        first = Eigen::Map<const Eigen::Vector3d>(volume.first.data());
    }
    [[nodiscard]] image::Point in_voxels(const Vector3& point) const {
        const Eigen::Vector3d at = to_voxels * (Eigen::Map<const Eigen::Vector3d>(point.data()) - first);
        image::Point out{};
        for (int i = 0; i < 3; ++i)
            out.x[i] = static_cast<float>(at[i] + 0.5);
        return out;
    }
    [[nodiscard]] double per_cm(const Vector3& point) const {
        const image::Point at = in_voxels(point);
        std::size_t index = 0;
        for (std::size_t i = 3; i-- > 0;) {
            if (!(at.x[i] >= 0 && at.x[i] < static_cast<float>(volume.n[i]))) return 0;
            index = index * volume.n[i] + static_cast<std::size_t>(at.x[i]);
        }
        return static_cast<double>(volume.values[index]);
    }
    void extend(Extent& extent) const {
        for (unsigned corner = 0; corner < 8; ++corner) {
            for (std::size_t axis = 0; axis < 3; ++axis) {
                double at = volume.first[axis];
                for (std::size_t i = 0; i < 3; ++i)
                    at += volume.step[i][axis] * ((corner >> i & 1U) != 0 ? volume.n[i] - 0.5 : -0.5);
                extent.low[axis] = std::min(extent.low[axis], at);
                extent.high[axis] = std::max(extent.high[axis], at);
            }
        }
    }
    [[nodiscard]] double integral(const Vector3& from, const Vector3& to) const {
        const image::Point a = in_voxels(from);
        const image::Point b = in_voxels(to);
        double sum = 0;
        image::Ray(box, a, b).walk([&](std::uint32_t voxel, float length) {
            sum += static_cast<double>(volume.values[voxel]) * static_cast<double>(length);
        });
        if (sum == 0) return 0;
        const double voxels = std::hypot(a.x[0] - b.x[0], a.x[1] - b.x[1], a.x[2] - b.x[2]);
        const double mm = std::hypot(from[0] - to[0], from[1] - to[1], from[2] - to[2]);
        return sum * mm / voxels / 10;
    }
};

AttenuatingObject AttenuatingObject::of(const std::vector<std::string>& parts) {
    AttenuatingObject out;
    for (const std::string& part : parts) {
        if (const auto numbers = numbers_of(part)) {
            out.add(cylinder_of(part, *numbers));
        } else if (std::filesystem::exists(part)) {
            out.add(nifti::load(part), part);
        } else {
            throw petlm::UsageError("--attenuation " + part + ": expected " + form +
                                    ", found neither such numbers nor a file");
        }
    }
    return out;
}

void AttenuatingObject::add(nifti::Volume map, const std::string& name) {
    for (const float value : map.values) {
        if (value >= 0 && static_cast<double>(value) <= max_per_cm) continue;
        throw config::Error(fmt::format(
            "{}: expected linear attenuation at 511 keV, 0 to {} per cm (water: {}), found {}: Hounsfield "
            "units and other numbers of a CT have to be converted",
            name, max_per_cm, water_per_cm, value));
    }
    maps_.push_back(std::make_shared<const Map>(std::move(map), name));
}

void AttenuatingObject::move(double mm) {
    for (AttenuatingCylinder& cylinder : cylinders_) {
        cylinder.shape.from[2] += mm;
        cylinder.shape.to[2] += mm;
    }
    for (auto& map : maps_) {
        nifti::Volume moved = map->volume;
        moved.first[2] += mm;
        map = std::make_shared<const Map>(std::move(moved), map->name);
    }
}

double AttenuatingObject::integral(const Vector3& from, const Vector3& to) const {
    double sum = 0;
    for (const AttenuatingCylinder& cylinder : cylinders_) {
        if (const auto chord = estimate::chord_of(cylinder.shape, from, to))
            sum += cylinder.per_cm * (chord->end_mm - chord->begin_mm) / 10;
    }
    for (const auto& map : maps_)
        sum += map->integral(from, to);
    return sum;
}

double AttenuatingObject::per_cm(const Vector3& point) const {
    double sum = 0;
    for (const AttenuatingCylinder& cylinder : cylinders_) {
        const estimate::KnownSource& shape = cylinder.shape;
        if (point[2] >= shape.from[2] && point[2] <= shape.to[2] &&
            std::hypot(point[0] - shape.from[0], point[1] - shape.from[1]) <= shape.radius_mm)
            sum += cylinder.per_cm;
    }
    for (const auto& map : maps_)
        sum += map->per_cm(point);
    return sum;
}

AttenuatingObject::Extent AttenuatingObject::extent() const {
    constexpr double far = std::numeric_limits<double>::infinity();
    Extent out{{far, far, far}, {-far, -far, -far}};
    for (const AttenuatingCylinder& cylinder : cylinders_) {
        const estimate::KnownSource& shape = cylinder.shape;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            const double beside = axis < 2 ? shape.radius_mm : 0;
            out.low[axis] = std::min(out.low[axis], shape.from[axis] - beside);
            out.high[axis] = std::max(out.high[axis], shape.to[axis] + beside);
        }
    }
    for (const auto& map : maps_)
        map->extend(out);
    return out;
}

void AttenuatingObject::add_to(config::Sha256& digest) const {
    digest.add_values(cylinders_);
    digest.add_value(maps_.size());
    for (const auto& map : maps_) {
        digest.add_value(map->volume.n);
        digest.add_value(map->volume.step);
        digest.add_value(map->volume.first);
        digest.add_values(map->volume.values);
    }
}

std::string AttenuatingObject::text() const {
    std::string out;
    if (!cylinders_.empty())
        out = fmt::format("{} cylinder{}", cylinders_.size(), cylinders_.size() == 1 ? "" : "s");
    for (const auto& map : maps_)
        out += (out.empty() ? "map " : ", map ") + map->name;
    return out;
}

}  // namespace petacq::corrections

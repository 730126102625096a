#include "tools/petlm/reconstruction/frames/regions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <optional>
#include <set>
#include <string_view>

#include "tools/nifti/nifti.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::frames {
namespace {

using config::Vector3;
using petlm::UsageError;

constexpr int places = 4;  // along each axis of a voxel

/// Where a region may be, and whether it is at a point, mm.
struct RegionShape {
    Vector3 low;
    Vector3 high;
    double volume_ml = 0;
    std::function<bool(const Vector3&)> has;
};

std::optional<std::array<double, 4>> numbers_in(std::string_view text) {
    std::array<double, 4> out{};
    for (std::size_t i = 0; i < out.size(); ++i) {
        const char* const last = text.data() + text.size();
        const auto [end, error] = std::from_chars(text.data(), last, out.at(i));
        if (error != std::errc() || !std::isfinite(out.at(i))) return std::nullopt;
        const bool at_end = end == last;
        if (at_end != (i + 1 == out.size()) || (!at_end && *end != ',')) return std::nullopt;
        if (!at_end) text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    }
    return out;
}

RegionShape sphere(const std::array<double, 4>& xyzr) {
    const Vector3 middle{xyzr[0], xyzr[1], xyzr[2]};
    const double r = xyzr[3];
    RegionShape out;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        out.low[axis] = middle[axis] - r;
        out.high[axis] = middle[axis] + r;
    }
    out.volume_ml = 4.0 / 3 * std::numbers::pi * r * r * r / 1000;
    out.has = [middle, r](const Vector3& p) {
        return std::hypot(p[0] - middle[0], p[1] - middle[1], p[2] - middle[2]) <= r;
    };
    return out;
}

Vector3 cross(const Vector3& a, const Vector3& b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

double dot(const Vector3& a, const Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

RegionShape mask(nifti::Volume volume) {
    RegionShape out;
    out.low.fill(std::numeric_limits<double>::infinity());
    out.high.fill(-std::numeric_limits<double>::infinity());
    std::size_t count = 0;
    for (std::size_t i = 0; i < volume.values.size(); ++i) {
        if (!(volume.values[i] > 0.5F)) continue;
        ++count;
        const Vector3 middle =
            volume.at(i % volume.n[0], i / volume.n[0] % volume.n[1], i / volume.n[0] / volume.n[1]);
        for (std::size_t axis = 0; axis < 3; ++axis) {
            double reach = 0;
            for (const Vector3& step : volume.step)
                reach += std::abs(step[axis]) / 2;
            out.low[axis] = std::min(out.low[axis], middle[axis] - reach);
            out.high[axis] = std::max(out.high[axis], middle[axis] + reach);
        }
    }
    out.volume_ml = static_cast<double>(count) * volume.voxel_mm3() / 1000;
    const auto& s = volume.step;
    const double determinant = dot(s[0], cross(s[1], s[2]));
    std::array<Vector3, 3> inverse = {cross(s[1], s[2]), cross(s[2], s[0]), cross(s[0], s[1])};
    for (Vector3& row : inverse) {
        for (double& x : row)
            x /= determinant;
    }
    out.has = [volume = std::move(volume), inverse](const Vector3& p) {
        const Vector3 d{p[0] - volume.first[0], p[1] - volume.first[1], p[2] - volume.first[2]};
        std::array<std::size_t, 3> at{};
        for (std::size_t axis = 0; axis < 3; ++axis) {
            const double place = std::floor(dot(inverse.at(axis), d) + 0.5);
            if (!(place >= 0 && place < volume.n[axis])) return false;
            at[axis] = static_cast<std::size_t>(place);
        }
        return volume.values[(at[2] * volume.n[1] + at[1]) * volume.n[0] + at[0]] > 0.5F;
    };
    return out;
}

RegionShape shape_of(const std::string& text, const std::string& form) {
    constexpr std::string_view prefix = "sphere:";
    if (form.starts_with(prefix)) {
        const auto xyzr = numbers_in(std::string_view(form).substr(prefix.size()));
        if (!xyzr || !((*xyzr)[3] > 0))
            throw UsageError("--region " + text + ": expected sphere:x,y,z,r in mm with a radius above 0");
        return sphere(*xyzr);
    }
    RegionShape out = mask(nifti::load(form));
    if (out.volume_ml == 0) throw UsageError("--region " + text + ": no voxel of the mask is above 0.5");
    return out;
}

/// The voxels along an axis that the shape may reach: the first, and the one after the last.
std::pair<std::uint32_t, std::uint32_t> reach(const image::Grid& grid, const RegionShape& shape,
                                              std::size_t axis) {
    const auto voxel = [&](double mm) {
        return std::clamp(std::floor((mm - grid.low(axis)) / grid.voxel_mm), -1.0, 1.0 * grid.n[axis]);
    };
    return {static_cast<std::uint32_t>(std::max(voxel(shape.low[axis]), 0.0)),
            static_cast<std::uint32_t>(std::min(voxel(shape.high[axis]) + 1, 1.0 * grid.n[axis]))};
}

double share_of_voxel(const image::Grid& grid, const RegionShape& shape,
                      const std::array<std::uint32_t, 3>& at) {
    int inside = 0;
    const auto place = [&](std::size_t axis, int i) {
        return grid.centre(axis, at.at(axis)) + grid.voxel_mm * ((i + 0.5) / places - 0.5);
    };
    for (int z = 0; z < places; ++z) {
        for (int y = 0; y < places; ++y) {
            for (int x = 0; x < places; ++x)
                inside += shape.has({place(0, x), place(1, y), place(2, z)}) ? 1 : 0;
        }
    }
    return static_cast<double>(inside) / (places * places * places);
}

}  // namespace

Region::Region(const std::string& text, const image::Grid& grid) {
    const std::size_t equals = text.find('=');
    const auto good = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
               c == '-' || c == '.';
    };
    if (equals == std::string::npos || equals == 0 ||
        !std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(equals), good)) {
        throw UsageError("--region " + text +
                         ": expected NAME=sphere:x,y,z,r or NAME=mask.nii, with a name of letters, digits, "
                         "'_', '-' and '.'");
    }
    name_ = text.substr(0, equals);
    const RegionShape shape = shape_of(text, text.substr(equals + 1));
    const auto [x_from, x_to] = reach(grid, shape, 0);
    const auto [y_from, y_to] = reach(grid, shape, 1);
    const auto [z_from, z_to] = reach(grid, shape, 2);
    double voxels = 0;
    for (std::uint32_t z = z_from; z < z_to; ++z) {
        for (std::uint32_t y = y_from; y < y_to; ++y) {
            for (std::uint32_t x = x_from; x < x_to; ++x) {
                const double share = share_of_voxel(grid, shape, {x, y, z});
                if (share == 0) continue;
                shares_.emplace_back((z * grid.n[1] + y) * grid.n[0] + x, static_cast<float>(share));
                voxels += share;
            }
        }
    }
    if (shares_.empty()) {
        throw UsageError(
            fmt::format("--region {}: lies outside of the image, which reaches to {:g}, {:g} and {:g} mm "
                        "along x, y and z",
                        text, -grid.low(0), -grid.low(1), -grid.low(2)));
    }
    volume_ml_ = voxels * std::pow(grid.voxel_mm, 3) / 1000;
    bool cut = false;
    for (std::size_t axis = 0; axis < 3; ++axis)
        cut = cut || shape.low[axis] < grid.low(axis) || shape.high[axis] > -grid.low(axis);
    if (cut) inside_ = std::min(1.0, volume_ml_ / shape.volume_ml);
}

double Region::mean(std::span<const float> image) const {
    double sum = 0;
    double weight = 0;
    for (const auto& [voxel, share] : shares_) {
        sum += static_cast<double>(share) * static_cast<double>(image[voxel]);
        weight += static_cast<double>(share);
    }
    return sum / weight;
}

std::vector<Region> regions_of(const std::vector<std::string>& texts, const image::Grid& grid) {
    std::vector<Region> out;
    std::set<std::string> names;
    for (const std::string& text : texts) {
        out.emplace_back(text, grid);
        if (!names.insert(out.back().name()).second)
            throw UsageError("--region " + text + ": expected a name that no other region has");
    }
    return out;
}

}  // namespace petacq::frames

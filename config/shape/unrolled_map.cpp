#include "config/shape/unrolled_map.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <tuple>
#include <utility>

#include "config/shape/extent.hpp"

namespace petacq::config {

namespace {

constexpr double same_mm = 1e-3;
/// Directions are rounded to these parts of a radian.
constexpr double angle_steps = 1e6;
/// Between modules of different directions, and between bands, parts of their size.
constexpr double gap = 0.04;

double dot(const Vector3& a, const Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// A module before its band is known. Distances in mm.
struct FlatModule {
    std::uint32_t module = 0;
    bool faces_along = false;
    double angle = 0;     ///< of its direction, 0 to 2 pi; of one that faces along the axis its side, 0 or 1
    double from = 0;      ///< its front, from the axis or the centre of the scanner
    double to = 0;        ///< its end
    MapRectangle around;  ///< all its layers; x from the middle of its direction
    std::uint32_t band = 0;
};

bool overlap(double low_a, double high_a, double low_b, double high_b) {
    return low_a < high_b - same_mm && low_b < high_a - same_mm;
}
bool overlap_along(const FlatModule& a, const FlatModule& b) {
    return overlap(a.around.bottom, a.around.top, b.around.bottom, b.around.top);
}
bool overlap(const FlatModule& a, const FlatModule& b) {
    return overlap_along(a, b) && overlap(a.around.left, a.around.right, b.around.left, b.around.right);
}

/// The rectangle from low to high of both rows.
MapRectangle rectangle(const UnrolledMap::ModuleOnMap& m, double y_low, double y_high, double z_low,
                       double z_high) {
    std::array<double, 2> low{};
    std::array<double, 2> high{};
    for (std::size_t i = 0; i < 2; ++i) {
        const std::array<double, 4> ends = {m.along_y[i] * y_low, m.along_y[i] * y_high, m.along_z[i] * z_low,
                                            m.along_z[i] * z_high};
        low[i] = m.front[i] + std::min(ends[0], ends[1]) + std::min(ends[2], ends[3]);
        high[i] = m.front[i] + std::max(ends[0], ends[1]) + std::max(ends[2], ends[3]);
    }
    return {low[0], low[1], high[0], high[1]};
}

MapRectangle all_layers(const UnrolledMap::ModuleOnMap& m, const ModuleType& type) {
    double y_low = 0;
    double y_high = 0;
    double z_low = 0;
    double z_high = 0;
    for (const CrystalLayer& layer : type.layers) {
        y_low = std::min(y_low, layer.y.low());
        y_high = std::max(y_high, layer.y.high());
        z_low = std::min(z_low, layer.z.low());
        z_high = std::max(z_high, layer.z.high());
    }
    return rectangle(m, y_low, y_high, z_low, z_high);
}

/// Its place within its direction, as if all directions were at x = 0.
UnrolledMap::ModuleOnMap flat_place(const Module& m, FlatModule& flat) {
    flat.faces_along = faces_along_axis(m);
    Vector3 out = m.outward;
    double turn = 0;
    if (flat.faces_along) {
        flat.angle = m.outward[2] > 0 ? 1 : 0;
        out = {0, 0, m.outward[2] > 0 ? 1.0 : -1.0};
    } else {
        turn = std::atan2(m.outward[1], m.outward[0]);
        const double steps = std::round(turn * angle_steps);
        const double all = std::round(2 * std::numbers::pi * angle_steps);
        flat.angle = (steps < 0 ? steps + all : steps) / angle_steps;
    }
    const Vector3 across = {-std::sin(turn), std::cos(turn), 0};
    const Vector3 up = {out[1] * across[2] - out[2] * across[1], out[2] * across[0] - out[0] * across[2],
                        out[0] * across[1] - out[1] * across[0]};
    UnrolledMap::ModuleOnMap on_map;
    on_map.front = {dot(m.front_mm, across), flat.faces_along ? dot(m.front_mm, up) : m.front_mm[2]};
    on_map.along_y = {dot(m.along_y, across), dot(m.along_y, up)};
    on_map.along_z = {dot(m.along_z, across), dot(m.along_z, up)};
    flat.from =
        flat.faces_along ? std::abs(m.front_mm[2]) : dot(m.front_mm, {std::cos(turn), std::sin(turn), 0});
    return on_map;
}

/// Shells around the axis that do not touch each other have bands of their own, and so has a module that is
/// behind another of its direction within a shell.
void find_bands(std::vector<FlatModule>& modules) {
    std::sort(modules.begin(), modules.end(), [](const FlatModule& a, const FlatModule& b) {
        return std::tuple(a.faces_along, a.from, a.module) < std::tuple(b.faces_along, b.from, b.module);
    });
    std::uint32_t band = 0;  // the first one of the shell
    std::size_t shell = 0;   // its first module
    const auto end_shell = [&](std::size_t end) {
        std::uint32_t last = band;
        std::stable_sort(modules.begin() + static_cast<std::ptrdiff_t>(shell),
                         modules.begin() + static_cast<std::ptrdiff_t>(end),
                         [](const FlatModule& a, const FlatModule& b) { return a.angle < b.angle; });
        for (std::size_t i = shell; i < end; ++i) {
            modules[i].band = band;
            // Those of one distance are side by side; layers of different ones may share the room there.
            for (std::size_t k = i; k-- > shell && modules[i].angle == modules[k].angle;) {
                if (modules[i].from - modules[k].from > same_mm && overlap(modules[i], modules[k]))
                    modules[i].band = std::max(modules[i].band, modules[k].band + 1);
            }
            last = std::max(last, modules[i].band);
        }
        band = last + 1;
        shell = end;
    };
    double reach = 0;
    for (std::size_t i = 0; i < modules.size(); ++i) {
        if (i > shell && (modules[i].faces_along != modules[shell].faces_along || modules[i].from > reach))
            end_shell(i);
        reach = i == shell ? modules[i].to : std::max(reach, modules[i].to);
    }
    end_shell(modules.size());
}

/// mm of the map for each radian, so that directions whose modules are beside each other do not overlap.
/// `modules`: of one band, in the order of their angles.
double width_of_angles(const std::vector<FlatModule>& modules) {
    double widest = 0;
    for (const FlatModule& m : modules)
        widest = std::max({widest, std::abs(m.around.left), std::abs(m.around.right)});
    double scale = 0;
    for (std::size_t i = 0; i < modules.size(); ++i) {
        for (std::size_t k = i + 1; k < modules.size(); ++k) {
            const double apart = modules[k].angle - modules[i].angle;
            if (apart <= 0) continue;
            if (apart * scale > 2 * widest * (1 + gap)) break;
            if (overlap_along(modules[i], modules[k])) {
                const double needed = modules[i].around.right - modules[k].around.left;
                scale = std::max(scale, needed * (1 + gap) / apart);
            }
        }
    }
    return scale;
}

}  // namespace

UnrolledMap::UnrolledMap(std::shared_ptr<const Arrangement> arrangement)
    : arrangement_(std::move(arrangement)), modules_(arrangement_->modules().size()) {
    std::vector<FlatModule> flat(modules_.size());
    for (std::uint32_t i = 0; i < flat.size(); ++i) {
        const Module& m = arrangement_->modules()[i];
        const ModuleType& type = arrangement_->type_of(m);
        layers_ = std::max(layers_, static_cast<std::uint32_t>(type.layers.size()));
        flat[i].module = i;
        modules_[i] = flat_place(m, flat[i]);
        flat[i].to = flat[i].from + type.length_mm();
        flat[i].around = all_layers(modules_[i], type);
    }
    find_bands(flat);
    std::stable_sort(flat.begin(), flat.end(), [](const FlatModule& a, const FlatModule& b) {
        return std::tuple(a.band, a.angle) < std::tuple(b.band, b.angle);
    });
    // One scale for all bands, so that modules of one direction are above each other.
    const auto end_of_band = [&](auto begin) {
        return std::find_if(begin, flat.end(), [&](const FlatModule& m) { return m.band != begin->band; });
    };
    double scale = 0;
    for (auto begin = flat.begin(); begin != flat.end(); begin = end_of_band(begin))
        scale = std::max(scale, width_of_angles({begin, end_of_band(begin)}));
    double left = std::numeric_limits<double>::infinity();
    for (const FlatModule& m : flat)
        left = std::min(left, scale * m.angle + m.around.left);
    for (auto begin = flat.begin(); begin != flat.end();) {
        const auto end = end_of_band(begin);
        double low = begin->around.bottom;
        double high = begin->around.top;
        for (auto m = begin; m != end; ++m) {
            low = std::min(low, m->around.bottom);
            high = std::max(high, m->around.top);
        }
        const double bottom = height_ > 0 ? height_ + gap * (high - low) : 0;
        for (; begin != end; ++begin) {
            ModuleOnMap& m = modules_[begin->module];
            m.front[0] += scale * begin->angle - left;
            m.front[1] += bottom - low;
            width_ = std::max(width_, scale * begin->angle - left + begin->around.right);
        }
        height_ = bottom + high - low;
    }
}

MapRectangle UnrolledMap::module(std::uint32_t module) const {
    return all_layers(modules_[module], arrangement_->type_of(arrangement_->modules()[module]));
}

MapRectangle UnrolledMap::crystal(const CrystalAddress& a) const {
    const Module& module = arrangement_->modules()[a.module];
    const CrystalLayer& layer = arrangement_->type_of(module).layers[a.layer];
    const double y = layer.y.centres[a.column];
    const double z = layer.z.centres[a.row];
    const double half_y = layer.y.sizes[a.column] / 2;
    const double half_z = layer.z.sizes[a.row] / 2;
    return rectangle(modules_[a.module], y - half_y, y + half_y, z - half_z, z + half_z);
}

}  // namespace petacq::config

#include "tools/petlm/reconstruction/corrections/single_scatter.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "tools/petlm/reconstruction/projector/for_each_on.hpp"
#include "tools/petlm/reconstruction/projector/ray.hpp"
#include "tools/petsim/physics/compton.hpp"

namespace petacq::corrections {
namespace {

constexpr double apart_mm = 8;  // between nodes
constexpr double cells_of_box = 600;
constexpr std::size_t min_points = 200;
constexpr double beyond_mm = 30;  // of the ends of the scanner

/// A part of the object.
struct ScatterPoint {
    Vector3 at;
    double chance;  ///< volume * mu, mm^2
};

/// A crystal as seen from a point of the object.
struct View {
    std::array<float, 3> direction;  ///< from the point to the crystal
    float aim;                       ///< cosine at the face / distance^2
    float thickness;                 ///< integral of mu at 511 keV
    float straight;                  ///< exp(-thickness) * integral of the activity
};

/// What depends on the angle alone, by its cosine from -1 to 1.
class Angles {
  public:
    explicit Angles(const EnergyWindow& window) : of_(count + 1) {
        const double total = sim::klein_nishina_total(photopeak);
        const double accepted = window.accepted(photopeak);
        for (std::size_t i = 0; i <= count; ++i) {
            const double cosine = 2.0 * static_cast<double>(i) / count - 1;
            const double energy = photopeak * sim::compton_share(photopeak, cosine);
            // The total is 8 pi / 3 times that of klein_nishina_total, in squares of the electron's radius.
            const double density =
                sim::klein_nishina_density(photopeak, cosine) / 2 / (8 * std::numbers::pi / 3 * total);
            of_[i].density = static_cast<float>(density * window.accepted(energy) / accepted);
            of_[i].more = static_cast<float>(sim::klein_nishina_total(energy) / total);
        }
    }
    struct Values {
        float density;  ///< per solid angle, times the share that the window accepts
        float more;     ///< attenuation after the scatter divided by that before
    };
    [[nodiscard]] const Values& at(float cosine) const {
        const float place = (std::clamp(cosine, -1.0F, 1.0F) + 1) * (0.5F * count) + 0.5F;
        return of_[static_cast<std::size_t>(place)];
    }

  private:
    static constexpr std::size_t count = 2048;
    std::vector<Values> of_;
};

std::vector<ScatterPoint> points_of(const AttenuatingObject& object, const AttenuatingObject::Extent& box,
                                    double step) {
    constexpr int parts = 3;  // of a cell, along each axis
    std::array<int, 3> n{};
    Vector3 size{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const double length = box.high[axis] - box.low[axis];
        n[axis] = std::max(1, static_cast<int>(std::lround(length / step)));
        size[axis] = length / n[axis];
    }
    std::vector<ScatterPoint> out;
    const double part_mm3 = size[0] * size[1] * size[2] / (parts * parts * parts);
    for (int cell = 0; cell < n[0] * n[1] * n[2]; ++cell) {
        const std::array<int, 3> at = {cell % n[0], cell / n[0] % n[1], cell / n[0] / n[1]};
        ScatterPoint sum{};
        for (int part = 0; part < parts * parts * parts; ++part) {
            const std::array<int, 3> in = {part % parts, part / parts % parts, part / parts / parts};
            Vector3 p{};
            for (std::size_t axis = 0; axis < 3; ++axis)
                p[axis] = box.low[axis] + size[axis] * (at[axis] + (in[axis] + 0.5) / parts);
            const double chance = object.per_cm(p) / 10 * part_mm3;
            sum.chance += chance;
            for (std::size_t axis = 0; axis < 3; ++axis)
                sum.at[axis] += chance * p[axis];
        }
        if (!(sum.chance > 0)) continue;
        for (double& x : sum.at)
            x /= sum.chance;
        out.push_back(sum);
    }
    return out;
}

/// Of the part of the object in and near the scanner.
std::vector<ScatterPoint> points_in(const config::Scanner& scanner, const AttenuatingObject& object) {
    const double radius = scanner.dimensions.ring_radius_mm;
    const std::uint32_t last = scanner.geometry.crystal_count() - 1;
    const double end = config::crystal_place(scanner, last).front_centre_mm[2] + beyond_mm;
    const Vector3 most = {radius, radius, end};
    AttenuatingObject::Extent box = object.extent();
    double volume = 1;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        box.low[axis] = std::clamp(box.low[axis], -most[axis], most[axis]);
        box.high[axis] = std::clamp(box.high[axis], -most[axis], most[axis]);
        volume *= box.high[axis] - box.low[axis];
    }
    if (!(volume > 0)) return {};
    const double step = std::cbrt(volume / cells_of_box);
    auto points = points_of(object, box, step);
    // An object that fills a small part of the box.
    if (!points.empty() && points.size() < min_points)
        points = points_of(object, box, step * std::cbrt(static_cast<double>(points.size()) / min_points));
    return points;
}

}  // namespace

std::vector<std::uint32_t> SingleScatter::nodes_among(std::uint32_t crystals, double pitch_mm) {
    const auto spaces =
        std::min(crystals - 1, static_cast<std::uint32_t>(std::ceil((crystals - 1) * pitch_mm / apart_mm)));
    std::vector<std::uint32_t> out = {0};
    for (std::uint32_t i = 1; i <= spaces; ++i)
        out.push_back(i * (crystals - 1) / spaces);
    return out;
}

std::vector<SingleScatter::Between> SingleScatter::between(const std::vector<std::uint32_t>& nodes) {
    std::vector<Between> out = {{0, 0, 0}};
    for (std::uint32_t i = 1; i < nodes.size(); ++i) {
        for (std::uint32_t crystal = nodes[i - 1] + 1; crystal <= nodes[i]; ++crystal) {
            const double share = static_cast<double>(crystal - nodes[i - 1]) / (nodes[i] - nodes[i - 1]);
            out.push_back({i - 1, i, static_cast<float>(share)});
        }
    }
    return out;
}

SingleScatter::SingleScatter(const config::Scanner& scanner, const AttenuatingObject& object,
                             const Activity& activity, const EnergyWindow& window, net::WorkerPool& pool)
    : in_ring_(scanner.geometry.crystals_in_ring()), in_module_(scanner.geometry.crystals_per_module_y()) {
    const config::Dimensions& d = scanner.dimensions;
    const auto columns = nodes_among(in_module_, d.crystal_pitch_y_mm);
    const auto rings = nodes_among(scanner.geometry.rings(), d.crystal_pitch_z_mm);
    across_ = between(columns);
    along_ = between(rings);
    columns_ = static_cast<std::uint32_t>(columns.size());
    node_ring_ = in_ring_ / in_module_ * columns_;
    nodes_ = node_ring_ * static_cast<std::uint32_t>(rings.size());

    const auto points = points_in(scanner, object);
    const Angles angles(window);
    const image::Box box = image::Box::of(activity.grid);
    const auto as_point = [](const Vector3& v) {
        return image::Point{{static_cast<float>(v[0]), static_cast<float>(v[1]), static_cast<float>(v[2])}};
    };
    const auto place_of = [&](std::uint32_t node) {
        const std::uint32_t in_ring = node % node_ring_ / columns_ * in_module_ + columns[node % columns_];
        return config::crystal_place(scanner, rings[node / node_ring_] * in_ring_ + in_ring);
    };
    std::vector<View> views(points.size() * nodes_);
    image::for_each_on(pool, nodes_, [&](std::size_t node) {
        const config::CrystalPlace place = place_of(static_cast<std::uint32_t>(node));
        for (std::size_t p = 0; p < points.size(); ++p) {
            const Vector3& from = points[p].at;
            View& view = views[node * points.size() + p];
            double square = 0;
            double cosine = 0;
            for (std::size_t axis = 0; axis < 3; ++axis) {
                const double way = place.front_centre_mm[axis] - from[axis];
                square += way * way;
                cosine += way * place.outward[axis];
            }
            const double distance = std::sqrt(square);
            for (std::size_t axis = 0; axis < 3; ++axis)
                view.direction[axis] =
                    static_cast<float>((place.front_centre_mm[axis] - from[axis]) / distance);
            view.aim = static_cast<float>(std::max(cosine / distance, 0.0) / square);
            const double thickness = object.integral(from, place.front_centre_mm);
            double sum = 0;
            image::Ray(box, as_point(from), as_point(place.front_centre_mm))
                .walk([&](std::uint32_t voxel, float mm) {
                    sum += static_cast<double>(activity.per_mm3[voxel]) * static_cast<double>(mm);
                });
            view.thickness = static_cast<float>(thickness);
            view.straight = static_cast<float>(std::exp(-thickness) * sum);
        }
    });
    values_.resize(std::size_t{nodes_} * nodes_);
    const double face = d.crystal_pitch_y_mm * d.crystal_pitch_z_mm;
    const double scale = face * face / (2 * std::numbers::pi);
    image::for_each_on(pool, nodes_, [&](std::size_t a) {
        for (std::size_t b = 0; b < a; ++b) {
            const View* const of_a = views.data() + a * points.size();
            const View* const of_b = views.data() + b * points.size();
            double sum = 0;
            for (std::size_t p = 0; p < points.size(); ++p) {
                const View& u = of_a[p];
                const View& v = of_b[p];
                const float cosine = -(u.direction[0] * v.direction[0] + u.direction[1] * v.direction[1] +
                                       u.direction[2] * v.direction[2]);
                const Angles::Values& angle = angles.at(cosine);
                if (angle.density < 1e-9F) continue;
                const float both = u.straight * std::exp(-angle.more * v.thickness) +
                                   v.straight * std::exp(-angle.more * u.thickness);
                sum += points[p].chance * static_cast<double>(u.aim * v.aim * angle.density * both);
            }
            values_[a * nodes_ + b] = values_[b * nodes_ + a] = static_cast<float>(scale * sum);
        }
    });
}

double SingleScatter::counts(std::uint32_t a, std::uint32_t b) const {
    struct Corner {
        std::uint32_t node;
        float share;
    };
    const auto corners = [&](std::uint32_t crystal) {
        const std::uint32_t around = crystal % in_ring_;
        const Between& c = across_[around % in_module_];
        const Between& r = along_[crystal / in_ring_];
        const std::uint32_t first = around / in_module_ * columns_;
        return std::array<Corner, 4>{{{r.below * node_ring_ + first + c.below, (1 - r.share) * (1 - c.share)},
                                      {r.below * node_ring_ + first + c.above, (1 - r.share) * c.share},
                                      {r.above * node_ring_ + first + c.below, r.share * (1 - c.share)},
                                      {r.above * node_ring_ + first + c.above, r.share * c.share}}};
    };
    const auto of_a = corners(std::min(a, b));
    const auto of_b = corners(std::max(a, b));
    double sum = 0;
    for (const Corner& u : of_a) {
        float partners = 0;
        for (const Corner& v : of_b)
            partners += v.share * values_[std::size_t{u.node} * nodes_ + v.node];
        sum += static_cast<double>(u.share * partners);
    }
    return sum;
}

}  // namespace petacq::corrections

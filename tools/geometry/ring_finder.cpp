#include "tools/geometry/ring_finder.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace petacq::geometry {

namespace {

// Grows with the angle from 0 to 4 over a turn, without an arc tangent.
double turn(double x, double y) {
    const double share = y / (std::abs(x) + std::abs(y));
    if (x < 0) return 2 - share;
    return y < 0 ? 4 + share : share;
}

std::vector<double> transaxial_centres(const config::Scanner& scanner) {
    std::vector<double> centres;
    for (std::uint32_t j = 0; j < scanner.geometry.crystals_per_module_y(); ++j) {
        const auto place = config::crystal_place(scanner, j);
        centres.push_back(-place.front_centre_mm[0] * place.outward[1] +
                          place.front_centre_mm[1] * place.outward[0]);
    }
    return centres;
}

std::vector<double> axial_centres(const config::Scanner& scanner) {
    std::vector<double> centres;
    for (std::uint32_t r = 0; r < scanner.geometry.rings(); ++r) {
        centres.push_back(
            config::crystal_place(scanner, r * scanner.geometry.crystals_in_ring()).front_centre_mm[2]);
    }
    return centres;
}

}  // namespace

RingFinder::RingFinder(const config::Scanner& scanner)
    : radius_(scanner.dimensions.ring_radius_mm),
      crystal_length_(scanner.dimensions.crystal_length_mm),
      half_sector_(std::numeric_limits<double>::infinity()),
      crystals_per_module_(scanner.geometry.crystals_per_module_y()),
      crystals_in_ring_(scanner.geometry.crystals_in_ring()),
      transaxial_(Intervals::equal(transaxial_centres(scanner), scanner.dimensions.crystal_pitch_y_mm)),
      axial_(Intervals::equal(axial_centres(scanner), scanner.dimensions.crystal_pitch_z_mm)) {
    const std::uint32_t count = scanner.geometry.modules_in_ring();
    for (std::uint32_t k = 0; k < count; ++k) {
        const auto place = config::crystal_place(scanner, k * crystals_per_module_);
        panels_.push_back({place.outward[0], place.outward[1]});
    }
    if (count > 2) half_sector_ = radius_ * std::tan(std::numbers::pi / count);
    panel_of_cell_.resize(16UL * count);
    const double cells = static_cast<double>(panel_of_cell_.size());
    for (std::size_t c = 0; c < panel_of_cell_.size(); ++c) {
        const double t = (static_cast<double>(c) + 0.5) * 4 / cells;
        const double x = t < 2 ? 1 - t : t - 3;
        const double y = t < 1 ? t : (t < 3 ? 2 - t : t - 4);
        panel_of_cell_[c] = static_cast<std::uint16_t>(nearest_panel(x, y));
    }
}

std::size_t RingFinder::nearest_panel(double x, double y) const {
    const auto along = [&](const Panel& p) { return p.nx * x + p.ny * y; };
    return static_cast<std::size_t>(
        std::max_element(panels_.begin(), panels_.end(),
                         [&](const Panel& a, const Panel& b) { return along(a) < along(b); }) -
        panels_.begin());
}

// The panel whose sector contains the point, or a neighbour of it.
std::size_t RingFinder::panel_of_cell(double x, double y) const {
    const auto cell = static_cast<std::size_t>(turn(x, y) * static_cast<double>(panel_of_cell_.size()) / 4);
    return panel_of_cell_[std::min(cell, panel_of_cell_.size() - 1)];
}

// The side through which the ray leaves the polygon of panels. It has none if the ray leaves the scanner at
// an end.
std::size_t RingFinder::panel_ahead(const Vector3& from, const Vector3& direction) const {
    const double a = direction[0] * direction[0] + direction[1] * direction[1];
    const double b = from[0] * direction[0] + from[1] * direction[1];
    const double inside = radius_ * radius_ - from[0] * from[0] - from[1] * from[1];
    if (a <= 0 || inside <= 0) return panels_.size();
    if (panels_.size() <= 2) {  // not a polygon: try each panel
        for (std::size_t k = 0; k < panels_.size(); ++k) {
            if (enter(k, from, direction)) return k;
        }
        return panels_.size();
    }
    const double t = (std::sqrt(b * b + a * inside) - b) / a;
    // Most rays leave a short scanner at an end. No panel is nearer than the circle inside the polygon; what
    // t lacks by rounding is far below the slack.
    constexpr double slack_mm = 1e-6;
    const double z = from[2] + t * direction[2];
    if (direction[2] > 0 ? z > axial_.high() + slack_mm : z < axial_.low() - slack_mm) return panels_.size();
    std::size_t k = panel_of_cell(from[0] + t * direction[0], from[1] + t * direction[1]);
    for (std::size_t step = 0; step < panels_.size(); ++step) {
        const Panel& p = panels_[k];
        const double towards = p.nx * direction[0] + p.ny * direction[1];
        if (towards <= 0) return panels_.size();
        const double reach = (radius_ - p.nx * from[0] - p.ny * from[1]) / towards;
        const double v = p.nx * (from[1] + reach * direction[1]) - p.ny * (from[0] + reach * direction[0]);
        if (v > half_sector_) {
            k = k + 1 == panels_.size() ? 0 : k + 1;
        } else if (v < -half_sector_) {
            k = k == 0 ? panels_.size() - 1 : k - 1;
        } else {
            return k;
        }
    }
    return panels_.size();
}

std::optional<Entry> RingFinder::enter(std::size_t panel, const Vector3& from,
                                       const Vector3& direction) const {
    const Panel& p = panels_[panel];
    const double towards = p.nx * direction[0] + p.ny * direction[1];
    if (towards <= 0) return std::nullopt;
    const double reach = (radius_ - p.nx * from[0] - p.ny * from[1]) / towards;
    const std::uint32_t ring = axial_.find(from[2] + reach * direction[2]);
    if (ring == Intervals::none) return std::nullopt;
    const double v = p.nx * (from[1] + reach * direction[1]) - p.ny * (from[0] + reach * direction[0]);
    const std::uint32_t across = transaxial_.find(v);
    if (across == Intervals::none) return std::nullopt;
    return Entry{static_cast<std::uint32_t>(panel) * crystals_per_module_ + across + ring * crystals_in_ring_,
                 reach};
}

double RingFinder::outer_radius_mm() const {
    return std::hypot(radius_ + crystal_length_,
                      std::max(std::abs(transaxial_.low()), std::abs(transaxial_.high())));
}

std::optional<std::uint32_t> RingFinder::crystal_at(const Vector3& point) const {
    if (point[0] == 0 && point[1] == 0) return std::nullopt;
    const std::uint32_t ring = axial_.find(point[2]);
    if (ring == Intervals::none) return std::nullopt;
    std::size_t k = panel_of_cell(point[0], point[1]);
    for (std::size_t step = 0; step < panels_.size(); ++step) {
        const Panel& p = panels_[k];
        const double along = p.nx * point[0] + p.ny * point[1];
        const double v = p.nx * point[1] - p.ny * point[0];
        const double half_width = half_sector_ * (along / radius_);  // of the sector at this distance
        if (panels_.size() > 2 && v > half_width) {
            k = k + 1 == panels_.size() ? 0 : k + 1;
        } else if (panels_.size() > 2 && v < -half_width) {
            k = k == 0 ? panels_.size() - 1 : k - 1;
        } else {
            if (along < radius_ || along > radius_ + crystal_length_) return std::nullopt;
            const std::uint32_t across = transaxial_.find(v);
            if (across == Intervals::none) return std::nullopt;
            return static_cast<std::uint32_t>(k) * crystals_per_module_ + across + ring * crystals_in_ring_;
        }
    }
    return std::nullopt;
}

}  // namespace petacq::geometry

#include "tests/tools/petcal/estimate/drawn_pairs.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "config/base/constants.hpp"
#include "tests/config/helpers.hpp"

namespace petacq::test {

namespace {

constexpr double turn = 2 * std::numbers::pi;

double dot(const config::Vector3& a, const config::Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

std::optional<std::uint32_t> place_in(const config::CrystalRow& row, double at) {
    for (std::uint32_t i = 0; i < row.count(); ++i)
        if (std::abs(at - row.centres[i]) < row.sizes[i] / 2) return i;
    return std::nullopt;
}

}  // namespace

config::Scanner example_of_long_form(const std::string& name) {
    return config::load_scanner(example("scanners/" + name + ".scanner.json"));
}

DrawnPairs::DrawnPairs(const config::Scanner& scanner, std::uint64_t seed)
    : arrangement_(config::arrangement_of(scanner)), tick_ps_(scanner.tick_ps), random_(seed) {
    for (std::uint32_t i = 0; i < arrangement_->crystal_count(); ++i) {
        offsets_.push_back(30 * normal_(random_));
        efficiency_.push_back(std::clamp(0.8 + 0.1 * normal_(random_), 0.6, 1.0));
    }
    // Photons that fly steeper leave the scanner at one end.
    double length = 0;
    double radius = 1e9;
    for (std::uint32_t i = 0; i < arrangement_->crystal_count(); ++i) {
        const config::Vector3 p = arrangement_->place(i).front_centre_mm;
        length = std::max(length, 2 * std::abs(p[2]) + 5);
        radius = std::min(radius, std::hypot(p[0], p[1]));
    }
    steepest_ = length / std::hypot(length, 2 * radius - 2);
}

std::optional<DrawnPairs::Pair> DrawnPairs::next(const FastSource& source) {
    const double r = source.radius * std::sqrt(uniform_(random_));
    const double at = turn * uniform_(random_);
    const config::Vector3 from{source.x + r * std::cos(at), source.y + r * std::sin(at),
                               source.z + source.length * (uniform_(random_) - 0.5)};
    const double along = steepest_ * (2 * uniform_(random_) - 1);
    const double across = std::sqrt(1 - along * along);
    const double way = turn * uniform_(random_);
    const config::Vector3 to{across * std::cos(way), across * std::sin(way), along};
    const auto a = detect(from, to);
    const auto b = a ? detect(from, {-to[0], -to[1], -to[2]}) : std::nullopt;
    if (!b || a->crystal == b->crystal) return std::nullopt;
    return Pair{a->crystal, b->crystal, time(*b) - time(*a)};
}

std::optional<DrawnPairs::Hit> DrawnPairs::detect(const config::Vector3& from, const config::Vector3& to) {
    faces_.clear();
    for (std::uint32_t m = 0; m < arrangement_->modules().size(); ++m) {
        const config::Module& module = arrangement_->modules()[m];
        const double cosine = dot(to, module.outward);
        if (cosine <= 0) continue;
        const config::Vector3 offset{module.front_mm[0] - from[0], module.front_mm[1] - from[1],
                                     module.front_mm[2] - from[2]};
        const double to_front = dot(offset, module.outward);
        const auto& layers = arrangement_->type_of(module).layers;
        for (std::uint32_t layer = 0; layer < layers.size(); ++layer) {
            const double way = (to_front + layers[layer].front_mm) / cosine;
            if (way <= 0) continue;
            const auto column =
                place_in(layers[layer].y, way * dot(to, module.along_y) - dot(offset, module.along_y));
            if (!column) continue;
            const auto row =
                place_in(layers[layer].z, way * dot(to, module.along_z) - dot(offset, module.along_z));
            if (row) faces_.push_back({arrangement_->crystal({m, layer, *column, *row}), way});
        }
    }
    std::sort(faces_.begin(), faces_.end(), [](const Hit& p, const Hit& q) { return p.way_mm < q.way_mm; });
    for (const Hit& hit : faces_)
        if (uniform_(random_) < efficiency_[hit.crystal]) return hit;
    return std::nullopt;
}

double DrawnPairs::time(const Hit& hit) {
    constexpr double sigma = 10;  // ticks
    return std::floor(1000 + hit.way_mm / (config::light_mm_per_ps * tick_ps_) + offsets_[hit.crystal] +
                      sigma * normal_(random_));
}

}  // namespace petacq::test

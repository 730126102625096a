#include "tools/geometry/module_finder.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace petacq::geometry {

ModuleFinder::ModuleFinder(std::shared_ptr<const config::Arrangement> arrangement)
    : arrangement_(std::move(arrangement)),
      grid_(config::boxes_of(arrangement_->modules(), arrangement_->types())),
      inner_radius_(std::numeric_limits<double>::infinity()),
      outer_radius_(0) {
    for (const config::ModuleType& type : arrangement_->types()) {
        types_.push_back(
            {static_cast<std::uint32_t>(layers_.size()), static_cast<std::uint32_t>(type.layers.size())});
        for (const config::CrystalLayer& l : type.layers) {
            layers_.push_back({Intervals(l.y.centres, l.y.sizes), Intervals(l.z.centres, l.z.sizes),
                               l.front_mm, l.front_mm + l.length_mm});
        }
    }
    for (const config::LayerBox& box : grid_.boxes()) {
        inner_radius_ = std::min(inner_radius_, config::distance_from_axis(box));
        for (const Vector3& corner : box.corners())
            outer_radius_ = std::max(outer_radius_, std::hypot(corner[0], corner[1]));
    }
}

ModuleFinder::Passage ModuleFinder::through(std::uint32_t box, const Vector3& from,
                                            const Vector3& direction) const {
    const config::LayerBox& boxed = grid_.boxes()[box];
    const config::Module& m = arrangement_->modules()[boxed.module];
    const Vector3 off{from[0] - m.front_mm[0], from[1] - m.front_mm[1], from[2] - m.front_mm[2]};
    Passage passage;
    passage.module_ = boxed.module;
    passage.type_ = m.type;
    passage.first_layer_ = boxed.first_layer;
    passage.end_layer_ = boxed.first_layer + boxed.layers;
    passage.from_ = {dot(off, m.along_y), dot(off, m.along_z), dot(off, m.outward)};
    passage.direction_ = {dot(direction, m.along_y), dot(direction, m.along_z), dot(direction, m.outward)};
    return passage;
}

std::optional<ModuleFinder::Passage> ModuleFinder::next(const Vector3& from, const Vector3& direction,
                                                        double after) const {
    const auto crossing = grid_.next(from, direction, after);
    if (!crossing) return std::nullopt;
    Passage passage = through(crossing->box, from, direction);
    passage.enter_ = crossing->enter;
    passage.leave_ = crossing->leave;
    return passage;
}

std::optional<Entry> ModuleFinder::find(const Vector3& from, const Vector3& direction) const {
    for (double after = 0;;) {
        const auto passage = next(from, direction, after);
        if (!passage) return std::nullopt;
        if (const auto entry = enter(*passage)) return entry;
        after = passage->leave();
    }
}

std::optional<Entry> ModuleFinder::enter(const Passage& p) const {
    if (p.direction_[2] <= 0) return std::nullopt;
    const Type& type = types_[p.type_];
    for (std::uint32_t layer = p.first_layer_; layer < p.end_layer_; ++layer) {
        const Layer& l = layers_[type.first_layer + layer];
        const double distance = (l.front - p.from_[2]) / p.direction_[2];
        if (distance < 0) continue;
        const std::uint32_t column = l.y.find(p.from_[0] + distance * p.direction_[0]);
        if (column == Intervals::none) continue;
        const std::uint32_t row = l.z.find(p.from_[1] + distance * p.direction_[1]);
        if (row == Intervals::none) continue;
        return Entry{arrangement_->crystal({p.module_, layer, column, row}), distance};
    }
    return std::nullopt;
}

std::optional<ModuleFinder::Inside> ModuleFinder::crystal_in(const Passage& p, const Vector3& point) const {
    const Type& type = types_[p.type_];
    for (std::uint32_t layer = 0; layer < type.layers; ++layer) {
        const Layer& l = layers_[type.first_layer + layer];
        if (point[2] < l.front || point[2] > l.back) continue;
        const std::uint32_t column = l.y.find(point[0]);
        const std::uint32_t row = column == Intervals::none ? column : l.z.find(point[1]);
        if (row == Intervals::none) continue;  // where layers touch, in the other one
        return Inside{arrangement_->crystal({p.module_, layer, column, row}), type.first_layer + layer};
    }
    return std::nullopt;
}

std::optional<ModuleFinder::Inside> ModuleFinder::crystal_at(const Passage& p, double distance) const {
    return crystal_in(p, {p.from_[0] + distance * p.direction_[0], p.from_[1] + distance * p.direction_[1],
                          p.from_[2] + distance * p.direction_[2]});
}

std::optional<std::uint32_t> ModuleFinder::crystal_at(const Vector3& point) const {
    const auto box = grid_.at(point);
    if (!box) return std::nullopt;
    const Passage here = through(*box, point, {});
    const auto inside = crystal_in(here, here.from_);
    return inside ? std::optional(inside->crystal) : std::nullopt;
}

}  // namespace petacq::geometry

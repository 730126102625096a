#include "tools/petlm/reconstruction/corrections/scatter_nodes.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/geometry/bore.hpp"
#include "tools/geometry/vector.hpp"

namespace petacq::corrections {
namespace {

constexpr double across_in_radius = 12;  // nodes around the ring: what misses the object falls steeply
constexpr double along_in_radius = 6;
constexpr std::uint32_t most_nodes = 4096;  // the table has their pairs
constexpr double same_place = 0.25;         // of the distance between nodes across
constexpr double same_direction = 0.7;      // cosine of the angle between two modules

using config::Vector3;

/// The nodes along one side of the modules of a type.
struct Side {
    double low = 1e300;  ///< mm, the first and the last crystal centre of all layers
    double high = -1e300;
    std::uint32_t spaces = 0;

    Side(const config::ModuleType& type, config::CrystalRow config::CrystalLayer::*row, double apart_mm) {
        for (const config::CrystalLayer& layer : type.layers) {
            low = std::min(low, (layer.*row).centres.front());
            high = std::max(high, (layer.*row).centres.back());
        }
        spaces = static_cast<std::uint32_t>(std::ceil((high - low) / apart_mm));
    }
    [[nodiscard]] std::uint32_t nodes() const { return spaces + 1; }
    [[nodiscard]] double width() const { return spaces > 0 ? (high - low) / spaces : 0; }
    [[nodiscard]] double node_mm(std::uint32_t node) const { return low + node * width(); }

    /// Between two nodes: the share of the upper one.
    struct Between {
        std::uint32_t below;
        std::uint32_t above;
        float share;
    };
    [[nodiscard]] Between around(double mm) const {
        const double place = spaces > 0 ? std::max((mm - low) / width(), 0.0) : 0;
        const auto below = std::min(static_cast<std::uint32_t>(place), spaces);
        return {below, std::min(below + 1, spaces), static_cast<float>(place - below)};
    }
};

/// Nodes of all modules; those that nearly coincide are one.
class SharedNodes {
  public:
    explicit SharedNodes(double reach_mm) : reach_mm_(reach_mm) {}

    /// The number of the node there.
    std::uint32_t at(const Vector3& mm, const Vector3& outward) {
        Cell cell{};
        for (std::size_t axis = 0; axis < 3; ++axis)
            cell[axis] = std::lround(mm[axis] / reach_mm_);
        for (int near = 0; near < 27; ++near) {
            const auto [first, last] = nodes_.equal_range(
                {cell[0] + near % 3 - 1, cell[1] + near / 3 % 3 - 1, cell[2] + near / 9 - 1});
            for (auto other = first; other != last; ++other) {
                const Vector3& there = other->second.mm;
                if (std::hypot(mm[0] - there[0], mm[1] - there[1], mm[2] - there[2]) < reach_mm_ &&
                    geometry::dot(outward, other->second.outward) > same_direction)
                    return other->second.number;
            }
        }
        nodes_.insert({cell, {mm, outward, count_}});
        return count_++;
    }
    [[nodiscard]] std::uint32_t count() const { return count_; }

  private:
    using Cell = std::array<long, 3>;
    struct Node {
        Vector3 mm;
        Vector3 outward;
        std::uint32_t number;
    };
    double reach_mm_;
    std::multimap<Cell, Node> nodes_;
    std::uint32_t count_ = 0;
};

}  // namespace

ScatterNodes::ScatterNodes(const config::Scanner& scanner) {
    const auto arrangement = config::arrangement_of(scanner);
    const double radius = geometry::bore_of(scanner).furthest_mm;
    corners_.resize(arrangement->crystal_count());
    class_of_.resize(arrangement->crystal_count());
    for (double wider = 1;; wider *= 1.5) {
        place(*arrangement, wider * radius / across_in_radius, wider * radius / along_in_radius);
        // With the four corners of each module there are as few as can be.
        if (nodes_ <= most_nodes || nodes_ <= 4 * arrangement->modules().size()) return;
    }
}

void ScatterNodes::place(const config::Arrangement& arrangement, double apart_across_mm,
                         double apart_along_mm) {
    struct OfType {
        Side y;
        Side z;
        std::uint32_t first_class;
    };
    std::vector<OfType> of_type;
    classes_ = 0;
    for (const config::ModuleType& type : arrangement.types()) {
        of_type.push_back({{type, &config::CrystalLayer::y, apart_across_mm},
                           {type, &config::CrystalLayer::z, apart_along_mm},
                           classes_});
        classes_ += static_cast<std::uint32_t>(type.layers.size());
    }
    SharedNodes shared(same_place * apart_across_mm);
    std::vector<std::vector<std::uint32_t>> of_module;  // [module][node along y, along z]
    for (const config::Module& module : arrangement.modules()) {
        const OfType& of = of_type[module.type];
        std::vector<std::uint32_t>& numbers = of_module.emplace_back();
        for (std::uint32_t i = 0; i < of.y.nodes() * of.z.nodes(); ++i) {
            Vector3 mm = module.front_mm;
            for (std::size_t axis = 0; axis < 3; ++axis)
                mm[axis] += of.y.node_mm(i / of.z.nodes()) * module.along_y[axis] +
                            of.z.node_mm(i % of.z.nodes()) * module.along_z[axis];
            numbers.push_back(shared.at(mm, module.outward));
        }
    }
    nodes_ = shared.count();
    for (std::uint32_t crystal = 0; crystal < crystals(); ++crystal) {
        const config::CrystalAddress at = arrangement.address(crystal);
        const std::uint32_t type = arrangement.modules()[at.module].type;
        const config::CrystalLayer& layer = arrangement.types()[type].layers[at.layer];
        const OfType& of = of_type[type];
        const Side::Between y = of.y.around(layer.y.centres[at.column]);
        const Side::Between z = of.z.around(layer.z.centres[at.row]);
        const std::vector<std::uint32_t>& numbers = of_module[at.module];
        const auto node = [&](std::uint32_t column, std::uint32_t row) {
            return numbers[column * of.z.nodes() + row];
        };
        corners_[crystal] = {{{node(y.below, z.below), (1 - y.share) * (1 - z.share)},
                              {node(y.above, z.below), y.share * (1 - z.share)},
                              {node(y.below, z.above), (1 - y.share) * z.share},
                              {node(y.above, z.above), y.share * z.share}}};
        class_of_[crystal] = of.first_class + at.layer;
    }
}

NodePairs::NodePairs(const config::Scanner& scanner)
    : nodes_(std::make_shared<const ScatterNodes>(scanner)),
      values_(std::size_t{nodes_->count()} * nodes_->count()),
      hits_(nodes_->classes()),
      of_class_(nodes_->classes(), 1) {}

void NodePairs::add(std::uint32_t a, std::uint32_t b, double weight) {
    for (const ScatterNodes::Corner& u : nodes_->corners(a)) {
        for (const ScatterNodes::Corner& v : nodes_->corners(b))
            values_[std::size_t{u.node} * nodes_->count() + v.node] +=
                static_cast<float>(weight) * u.share * v.share;
    }
    if (nodes_->classes() > 1) {
        hits_[nodes_->class_of(a)] += weight;
        hits_[nodes_->class_of(b)] += weight;
    }
}

void NodePairs::add(const NodePairs& other) {
    for (std::size_t i = 0; i < values_.size(); ++i)
        values_[i] += other.values_[i];
    for (std::size_t i = 0; i < hits_.size(); ++i)
        hits_[i] += other.hits_[i];
}

void NodePairs::finish() {
    if (nodes_->classes() > 1) find_classes();
    per_pair();
}

void NodePairs::find_classes() {
    std::vector<double> crystals(nodes_->classes());
    for (std::uint32_t crystal = 0; crystal < nodes_->crystals(); ++crystal)
        ++crystals[nodes_->class_of(crystal)];
    double all = 0;
    for (std::size_t i = 0; i < of_class_.size(); ++i) {
        all += hits_[i];
        of_class_[i] = hits_[i] / std::max(crystals[i], 1.0);
    }
    for (double& share : of_class_)
        share = all > 0 ? share * nodes_->crystals() / all : 1;
}

void NodePairs::per_pair() {
    const std::uint32_t nodes = nodes_->count();
    std::vector<double> crystals(nodes);
    for (std::uint32_t crystal = 0; crystal < nodes_->crystals(); ++crystal) {
        const double weight = of_class_[nodes_->class_of(crystal)];
        for (const ScatterNodes::Corner& corner : nodes_->corners(crystal))
            crystals[corner.node] += weight * static_cast<double>(corner.share);
    }
    for (std::size_t a = 0; a < nodes; ++a) {
        for (std::size_t b = 0; b <= a; ++b) {
            float& one = values_[a * nodes + b];
            float& other = values_[b * nodes + a];
            const double both = a == b ? 2 * static_cast<double>(one) : static_cast<double>(one + other);
            const double pairs = crystals[a] * crystals[b];
            one = other = pairs > 0 ? static_cast<float>(both / pairs) : 0;
        }
    }
}

double NodePairs::counts(std::uint32_t a, std::uint32_t b) const {
    const ScatterNodes::Corners& of_a = nodes_->corners(std::min(a, b));
    const ScatterNodes::Corners& of_b = nodes_->corners(std::max(a, b));
    double sum = 0;
    for (const ScatterNodes::Corner& u : of_a) {
        float partners = 0;
        for (const ScatterNodes::Corner& v : of_b)
            partners += v.share * values_[std::size_t{u.node} * nodes_->count() + v.node];
        sum += static_cast<double>(u.share * partners);
    }
    if (nodes_->classes() > 1) sum *= of_class_[nodes_->class_of(a)] * of_class_[nodes_->class_of(b)];
    return sum;
}

}  // namespace petacq::corrections

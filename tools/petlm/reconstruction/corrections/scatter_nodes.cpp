#include "tools/petlm/reconstruction/corrections/scatter_nodes.hpp"

#include <algorithm>
#include <cmath>

#include "tools/geometry/bore.hpp"

namespace petacq::corrections {
namespace {

constexpr double across_in_radius = 12;  // nodes around the ring: what misses the object falls steeply
constexpr double along_in_radius = 6;
constexpr std::uint32_t most_nodes = 4096;  // the table has their pairs

}  // namespace

ScatterNodes::ScatterNodes(const config::Scanner& scanner)
    : crystals_(scanner.geometry.crystal_count()), arrangement_(scanner.arrangement) {
    if (!arrangement_) {
        use_ring(scanner);
        return;
    }
    const double radius = geometry::bore_of(scanner).furthest_mm;
    for (double wider = 1;; wider *= 1.5) {
        use_modules(wider * radius / across_in_radius, wider * radius / along_in_radius);
        // With the four corners of each module there are as few as can be.
        if (nodes_ <= most_nodes || nodes_ <= 4 * arrangement_->modules().size()) return;
    }
}

void ScatterNodes::use_ring(const config::Scanner& scanner) {
    const config::Dimensions& d = scanner.dimensions;
    in_ring_ = scanner.geometry.crystals_in_ring();
    in_module_ = scanner.geometry.crystals_per_module_y();
    const auto columns = nodes_among(in_module_, d.crystal_pitch_y_mm, d.ring_radius_mm / across_in_radius);
    const auto rings =
        nodes_among(scanner.geometry.rings(), d.crystal_pitch_z_mm, d.ring_radius_mm / along_in_radius);
    across_ = between(columns);
    along_ = between(rings);
    columns_ = static_cast<std::uint32_t>(columns.size());
    node_ring_ = in_ring_ / in_module_ * columns_;
    nodes_ = node_ring_ * static_cast<std::uint32_t>(rings.size());
}

void ScatterNodes::use_modules(double apart_across_mm, double apart_along_mm) {
    nodes_ = classes_ = 0;
    first_node_.clear();
    nodes_along_.clear();
    layers_.clear();
    std::vector<std::uint32_t> of_type;
    for (const config::ModuleType& type : arrangement_->types()) {
        // From the first to the last crystal centre of all layers.
        struct Side {
            double low = 1e300;
            double high = -1e300;
            std::uint32_t spaces = 0;
        };
        const auto side = [&](config::CrystalRow config::CrystalLayer::*row, double apart) {
            Side out;
            for (const config::CrystalLayer& layer : type.layers) {
                out.low = std::min(out.low, (layer.*row).centres.front());
                out.high = std::max(out.high, (layer.*row).centres.back());
            }
            out.spaces = static_cast<std::uint32_t>(std::ceil((out.high - out.low) / apart));
            return out;
        };
        const Side y = side(&config::CrystalLayer::y, apart_across_mm);
        const Side z = side(&config::CrystalLayer::z, apart_along_mm);
        const auto places = [](const config::CrystalRow& row, const Side& of) {
            std::vector<Between> out;
            for (const double centre : row.centres) {
                const double place =
                    of.spaces == 0 ? 0
                                   : (centre - of.low) / (of.high - of.low) * static_cast<double>(of.spaces);
                const auto below = std::min(static_cast<std::uint32_t>(std::max(place, 0.0)), of.spaces);
                out.push_back({below, std::min(below + 1, of.spaces),
                               static_cast<float>(place - static_cast<double>(below))});
            }
            return out;
        };
        std::vector<OfLayer>& layers = layers_.emplace_back();
        for (const config::CrystalLayer& layer : type.layers)
            layers.push_back({places(layer.y, y), places(layer.z, z), classes_++});
        nodes_along_.push_back(z.spaces + 1);
        of_type.push_back((y.spaces + 1) * (z.spaces + 1));
    }
    for (const config::Module& module : arrangement_->modules()) {
        first_node_.push_back(nodes_);
        nodes_ += of_type[module.type];
    }
}

std::vector<std::uint32_t> ScatterNodes::nodes_among(std::uint32_t crystals, double pitch_mm,
                                                     double apart_mm) {
    const auto spaces =
        std::min(crystals - 1, static_cast<std::uint32_t>(std::ceil((crystals - 1) * pitch_mm / apart_mm)));
    std::vector<std::uint32_t> out = {0};
    for (std::uint32_t i = 1; i <= spaces; ++i)
        out.push_back(i * (crystals - 1) / spaces);
    return out;
}

std::vector<ScatterNodes::Between> ScatterNodes::between(const std::vector<std::uint32_t>& nodes) {
    std::vector<Between> out = {{0, 0, 0}};
    for (std::uint32_t i = 1; i < nodes.size(); ++i) {
        for (std::uint32_t crystal = nodes[i - 1] + 1; crystal <= nodes[i]; ++crystal) {
            const double share = static_cast<double>(crystal - nodes[i - 1]) / (nodes[i] - nodes[i - 1]);
            out.push_back({i - 1, i, static_cast<float>(share)});
        }
    }
    return out;
}

std::uint32_t ScatterNodes::class_of(std::uint32_t crystal) const {
    if (!arrangement_) return 0;
    const config::CrystalAddress at = arrangement_->address(crystal);
    return layers_[arrangement_->modules()[at.module].type][at.layer].of_class;
}

std::array<ScatterNodes::Corner, 4> ScatterNodes::corners(std::uint32_t crystal) const {
    const auto of = [](std::uint32_t first, std::uint32_t row, std::uint32_t column, const Between& r,
                       const Between& c) -> std::array<Corner, 4> {
        return {{{first + r.below * row + c.below * column, (1 - r.share) * (1 - c.share)},
                 {first + r.below * row + c.above * column, (1 - r.share) * c.share},
                 {first + r.above * row + c.below * column, r.share * (1 - c.share)},
                 {first + r.above * row + c.above * column, r.share * c.share}}};
    };
    if (!arrangement_) {
        const std::uint32_t around = crystal % in_ring_;
        return of(around / in_module_ * columns_, node_ring_, 1, along_[crystal / in_ring_],
                  across_[around % in_module_]);
    }
    const config::CrystalAddress at = arrangement_->address(crystal);
    const std::uint32_t type = arrangement_->modules()[at.module].type;
    const OfLayer& layer = layers_[type][at.layer];
    return of(first_node_[at.module], 1, nodes_along_[type], layer.along[at.row], layer.across[at.column]);
}

NodePairs::NodePairs(const config::Scanner& scanner)
    : nodes_(scanner),
      values_(std::size_t{nodes_.count()} * nodes_.count()),
      hits_(nodes_.classes()),
      of_class_(nodes_.classes(), 1) {}

void NodePairs::add(std::uint32_t a, std::uint32_t b, double weight) {
    const auto of_a = nodes_.corners(a);
    const auto of_b = nodes_.corners(b);
    for (const ScatterNodes::Corner& u : of_a) {
        for (const ScatterNodes::Corner& v : of_b)
            values_[std::size_t{u.node} * nodes_.count() + v.node] +=
                static_cast<float>(weight) * u.share * v.share;
    }
    if (nodes_.classes() > 1) {
        hits_[nodes_.class_of(a)] += weight;
        hits_[nodes_.class_of(b)] += weight;
    }
}

void NodePairs::add(const NodePairs& other) {
    for (std::size_t i = 0; i < values_.size(); ++i)
        values_[i] += other.values_[i];
    for (std::size_t i = 0; i < hits_.size(); ++i)
        hits_[i] += other.hits_[i];
}

void NodePairs::finish() {
    if (nodes_.classes() > 1) find_classes();
    per_pair();
}

void NodePairs::find_classes() {
    std::vector<double> crystals(nodes_.classes());
    for (std::uint32_t crystal = 0; crystal < nodes_.crystals(); ++crystal)
        ++crystals[nodes_.class_of(crystal)];
    double all = 0;
    for (std::size_t i = 0; i < of_class_.size(); ++i) {
        all += hits_[i];
        of_class_[i] = hits_[i] / std::max(crystals[i], 1.0);
    }
    for (double& share : of_class_)
        share = all > 0 ? share * nodes_.crystals() / all : 1;
}

void NodePairs::per_pair() {
    const std::uint32_t nodes = nodes_.count();
    std::vector<double> crystals(nodes);
    for (std::uint32_t crystal = 0; crystal < nodes_.crystals(); ++crystal) {
        const double weight = of_class_[nodes_.class_of(crystal)];
        for (const ScatterNodes::Corner& corner : nodes_.corners(crystal))
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
    const auto of_a = nodes_.corners(std::min(a, b));
    const auto of_b = nodes_.corners(std::max(a, b));
    double sum = 0;
    for (const ScatterNodes::Corner& u : of_a) {
        float partners = 0;
        for (const ScatterNodes::Corner& v : of_b)
            partners += v.share * values_[std::size_t{u.node} * nodes_.count() + v.node];
        sum += static_cast<double>(u.share * partners);
    }
    if (nodes_.classes() > 1) sum *= of_class_[nodes_.class_of(a)] * of_class_[nodes_.class_of(b)];
    return sum;
}

}  // namespace petacq::corrections

// Places at which scatter is known, and how crystals lie between them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "config/scanner/arrangement.hpp"

namespace petacq::corrections {

/// Crystals of a ring, or places on the modules of other arrangements, about a twelfth of the radius of the
/// scanner apart around the axis and a sixth along it. Between them is bilinear interpolation, along both
/// sides of the modules. The layers of a module share its nodes. Thread-safe.
class ScatterNodes {
  public:
    explicit ScatterNodes(const config::Scanner& scanner);

    struct Corner {
        std::uint32_t node;
        float share;
    };
    /// Those around a crystal; their shares add up to 1.
    [[nodiscard]] std::array<Corner, 4> corners(std::uint32_t crystal) const;
    [[nodiscard]] std::uint32_t count() const { return nodes_; }
    [[nodiscard]] std::uint32_t crystals() const { return crystals_; }
    /// Of crystals that absorb photons alike: a layer of a type of modules.
    [[nodiscard]] std::uint32_t class_of(std::uint32_t crystal) const;
    [[nodiscard]] std::uint32_t classes() const { return classes_; }

  private:
    /// Between two nodes of one direction: the share of the upper one.
    struct Between {
        std::uint32_t below;
        std::uint32_t above;
        float share;
    };
    struct OfLayer {
        std::vector<Between> across;  ///< [column]
        std::vector<Between> along;   ///< [row]
        std::uint32_t of_class = 0;
    };
    void use_ring(const config::Scanner& scanner);
    void use_modules(double apart_across_mm, double apart_along_mm);
    /// Those of a row of crystals that are nodes; the first and the last one included.
    static std::vector<std::uint32_t> nodes_among(std::uint32_t crystals, double pitch_mm, double apart_mm);
    /// [crystal of the row]
    static std::vector<Between> between(const std::vector<std::uint32_t>& nodes);

    std::uint32_t crystals_;
    std::uint32_t nodes_ = 0;
    std::uint32_t classes_ = 1;
    // Of a ring.
    std::uint32_t in_ring_ = 0;
    std::uint32_t in_module_ = 0;
    std::uint32_t columns_ = 0;    ///< of nodes in a module
    std::uint32_t node_ring_ = 0;  ///< nodes in a ring
    std::vector<Between> across_;  ///< [crystal of a module across]
    std::vector<Between> along_;   ///< [ring]
    // Of other arrangements.
    std::shared_ptr<const config::Arrangement> arrangement_;
    std::vector<std::uint32_t> first_node_;     ///< [module]
    std::vector<std::uint32_t> nodes_along_;    ///< [type]
    std::vector<std::vector<OfLayer>> layers_;  ///< [type][layer]
};

/// How many pairs each two crystals have, held at the nodes around them. Crystals of the same place in layers
/// or types that absorb differently share the pairs as all of their kind share the hits. Not thread-safe
/// until finished.
class NodePairs {
  public:
    explicit NodePairs(const config::Scanner& scanner);
    /// The order of the crystals does not matter.
    void add(std::uint32_t a, std::uint32_t b, double weight);
    /// Adds what another one of the same scanner was given.
    void add(const NodePairs& other);
    /// Once, after the last add().
    void finish();
    /// Of two crystals, in either order. After finish().
    [[nodiscard]] double counts(std::uint32_t a, std::uint32_t b) const;
    [[nodiscard]] std::uint32_t crystals() const { return nodes_.crystals(); }

  private:
    /// How many hits a crystal of each class has, relative to the mean of all crystals.
    void find_classes();
    /// Divides what the nodes hold by the number of pairs of crystals that share it.
    void per_pair();

    ScatterNodes nodes_;
    std::vector<float> values_;     ///< [node a][node b]
    std::vector<double> hits_;      ///< [ScatterNodes::class_of]
    std::vector<double> of_class_;  ///< likewise
};

}  // namespace petacq::corrections

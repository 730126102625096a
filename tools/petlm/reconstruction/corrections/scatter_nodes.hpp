// Places at which scatter is known, and how crystals lie between them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "config/scanner/arrangement.hpp"
#include "config/scanner/scanner.hpp"

namespace petacq::corrections {

/// Places on the modules, about a twelfth of the radius of the scanner apart around the axis and a sixth
/// along it, or more if there were too many; the outermost crystals of a module lie on the outermost ones.
/// Between them is bilinear interpolation, along both sides of the modules. The layers of a module share its
/// nodes, and modules that go on in about the same direction those where they meet. Thread-safe.
class ScatterNodes {
  public:
    explicit ScatterNodes(const config::Scanner& scanner);

    struct Corner {
        std::uint32_t node;
        float share;
    };
    using Corners = std::array<Corner, 4>;
    /// Those around a crystal; their shares add up to 1.
    [[nodiscard]] const Corners& corners(std::uint32_t crystal) const { return corners_[crystal]; }
    [[nodiscard]] std::uint32_t count() const { return nodes_; }
    [[nodiscard]] std::uint32_t crystals() const { return static_cast<std::uint32_t>(corners_.size()); }
    /// Of crystals that absorb photons alike: a layer of a type of modules.
    [[nodiscard]] std::uint32_t class_of(std::uint32_t crystal) const { return class_of_[crystal]; }
    [[nodiscard]] std::uint32_t classes() const { return classes_; }

  private:
    /// Places nodes so far apart.
    void place(const config::Arrangement& arrangement, double apart_across_mm, double apart_along_mm);

    std::vector<Corners> corners_;         ///< [crystal]
    std::vector<std::uint32_t> class_of_;  ///< [crystal]
    std::uint32_t nodes_ = 0;
    std::uint32_t classes_ = 1;
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
    [[nodiscard]] std::uint32_t crystals() const { return nodes_->crystals(); }

  private:
    /// How many hits a crystal of each class has, relative to the mean of all crystals.
    void find_classes();
    /// Divides what the nodes hold by the number of pairs of crystals that share it.
    void per_pair();

    std::shared_ptr<const ScatterNodes> nodes_;  ///< copies share them
    std::vector<float> values_;                  ///< [node a][node b]
    std::vector<double> hits_;                   ///< [ScatterNodes::class_of]
    std::vector<double> of_class_;               ///< likewise
};

}  // namespace petacq::corrections

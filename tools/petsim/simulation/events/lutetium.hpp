// Where Lu-176 decays.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/arrangement.hpp"
#include "tools/petsim/physics/ray.hpp"
#include "tools/petsim/random/random.hpp"

namespace petacq::sim {

/// The crystals of a scanner that contain lutetium: those of the materials that do, and all of a scanner of
/// the short form. Thread-safe.
class LutetiumCrystals {
  public:
    /// The scanner must outlive it.
    explicit LutetiumCrystals(const config::Scanner& scanner);

    [[nodiscard]] std::uint32_t count() const { return count_; }
    /// One of them, drawn by volume. REQUIRES: count() > 0.
    [[nodiscard]] std::uint32_t draw(Random& random) const;
    /// A point inside a crystal, evenly drawn.
    [[nodiscard]] Vector3 point_in(std::uint32_t crystal, Random& random) const;

  private:
    /// A layer of a module.
    struct LutetiumLayer {
        double upto;  ///< the volume of this part and those before it
        std::uint32_t module;
        std::uint32_t layer;
    };
    const config::Scanner& scanner_;
    std::shared_ptr<const config::Arrangement> arrangement_;
    std::uint32_t count_ = 0;
    std::vector<LutetiumLayer> parts_;  ///< empty: all crystals of the scanner contain it, and are equal
};

}  // namespace petacq::sim

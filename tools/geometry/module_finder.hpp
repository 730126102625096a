// Finds crystals in any arrangement of modules.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "config/scanner/arrangement.hpp"
#include "tools/geometry/box_grid.hpp"
#include "tools/geometry/entry.hpp"
#include "tools/geometry/intervals.hpp"
#include "tools/geometry/vector.hpp"

namespace petacq::geometry {

/// Thread-safe.
class ModuleFinder {
  public:
    explicit ModuleFinder(std::shared_ptr<const config::Arrangement> arrangement);

    /// The first front face on the way, of any layer, through which the ray passes outwards. `direction` is a
    /// unit vector.
    [[nodiscard]] std::optional<Entry> find(const Vector3& from, const Vector3& direction) const;
    /// The crystal that contains a point. Absent in a gap, and where no crystal is.
    [[nodiscard]] std::optional<std::uint32_t> crystal_at(const Vector3& point) const;

    /// A crystal and its layer.
    struct Inside {
        std::uint32_t crystal;
        std::uint32_t layer;  ///< of all layers of all types, type by type
    };
    /// A ray through layers of a module that fill one box, in the coordinates of the module: y, z, depth.
    class Passage {
      public:
        /// Distances from the origin of the ray.
        [[nodiscard]] double enter() const { return enter_; }
        [[nodiscard]] double leave() const { return leave_; }
        [[nodiscard]] std::uint32_t type() const { return type_; }

      private:
        friend class ModuleFinder;
        std::uint32_t module_ = 0;
        std::uint32_t type_ = 0;
        std::uint32_t first_layer_ = 0;
        std::uint32_t end_layer_ = 0;
        double enter_ = 0;
        double leave_ = 0;
        Vector3 from_{};
        Vector3 direction_{};
    };
    /// Through the first such layers that the ray does not leave before the distance `after`.
    [[nodiscard]] std::optional<Passage> next(const Vector3& from, const Vector3& direction,
                                              double after) const;
    /// The crystal at a distance along the ray of the passage.
    [[nodiscard]] std::optional<Inside> crystal_at(const Passage& passage, double distance) const;

    [[nodiscard]] const config::Arrangement& arrangement() const { return *arrangement_; }
    /// No crystal has a point that is nearer to the axis.
    [[nodiscard]] double inner_radius_mm() const { return inner_radius_; }
    /// No crystal has a point that is further from the axis.
    [[nodiscard]] double outer_radius_mm() const { return outer_radius_; }
    [[nodiscard]] double axial_low_mm() const { return grid_.low_z(); }
    [[nodiscard]] double axial_high_mm() const { return grid_.high_z(); }

  private:
    struct Layer {
        Intervals y;
        Intervals z;
        double front;
        double back;
    };
    struct Type {
        std::uint32_t first_layer;
        std::uint32_t layers;
    };
    [[nodiscard]] Passage through(std::uint32_t box, const Vector3& from, const Vector3& direction) const;
    [[nodiscard]] std::optional<Entry> enter(const Passage& passage) const;
    [[nodiscard]] std::optional<Inside> crystal_in(const Passage& passage, const Vector3& point) const;

    std::shared_ptr<const config::Arrangement> arrangement_;
    BoxGrid grid_;
    std::vector<Type> types_;
    std::vector<Layer> layers_;
    double inner_radius_;
    double outer_radius_;
};

}  // namespace petacq::geometry

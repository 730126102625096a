// The crystals of a scanner on a plane, for pictures of the detector: modules unrolled around the axis.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "config/arrangement.hpp"

namespace petacq::config {

/// On the map, mm: x to the right, y upwards.
struct MapRectangle {
    double left = 0;
    double bottom = 0;
    double right = 0;
    double top = 0;
};

/// Seen from outside: x runs counter-clockwise around the axis, y along it. Each module is at its angle,
/// those that face one direction side by side, and at its z. Angles are drawn so wide that modules of
/// different directions do not overlap, alike everywhere. Modules behind others have a band of their own
/// above them, such as those of a ring around an insert, and so have those that face along the axis. Layers
/// are maps of their own, of equal size. Immutable, so threads may share it.
class UnrolledMap {
  public:
    /// Where the middle of the front face of a module is on the map, and its directions there.
    struct ModuleOnMap {
        std::array<double, 2> front{};
        std::array<double, 2> along_y{};
        std::array<double, 2> along_z{};
    };

    explicit UnrolledMap(std::shared_ptr<const Arrangement> arrangement);

    [[nodiscard]] double width_mm() const { return width_; }
    [[nodiscard]] double height_mm() const { return height_; }
    /// Most layers of a module.
    [[nodiscard]] std::uint32_t layers() const { return layers_; }
    [[nodiscard]] const std::vector<ModuleOnMap>& modules() const { return modules_; }
    /// Around all layers of a module.
    [[nodiscard]] MapRectangle module(std::uint32_t module) const;
    /// REQUIRES: an address of the arrangement.
    [[nodiscard]] MapRectangle crystal(const CrystalAddress& address) const;

  private:
    std::shared_ptr<const Arrangement> arrangement_;
    std::vector<ModuleOnMap> modules_;
    double width_ = 0;
    double height_ = 0;
    std::uint32_t layers_ = 0;
};

}  // namespace petacq::config

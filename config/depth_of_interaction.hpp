// How deep in the crystals photons interact, and so where the lines between crystals end.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner.hpp"

namespace petacq::config {

/// The mean depth behind the front face at which the photons of a pair are absorbed, for each end of a line.
///
/// A photon that enters at an angle with this cosine to the length of a crystal is absorbed at a depth t with
/// a density of exp(-mu t / cosine). Photons spread from their source as the inverse square of the distance:
/// fewer of them meet the crystal further back. From a source half way along the line this is as if the
/// crystal attenuated more, by 4 / distance. The mean of that density over the length L is
///     L / 2 (1 - l(y)), y = L (mu + 4 / distance) / cosine / 2, l(y) = coth(y) - 1 / y (Langevin's
///     function).
class DepthOfInteraction {
  public:
    /// By length and material of the crystals.
    explicit DepthOfInteraction(const Dimensions& dimensions);
    /// The same for all lines.
    static constexpr DepthOfInteraction fixed(double mm) { return {0, 0, mm}; }
    /// fixed() if there is a value, else by length and material. Throws Error, naming the option --depth-mm,
    /// for a value outside the crystal.
    static DepthOfInteraction of(const Dimensions& dimensions, std::optional<double> mm);

    /// The depth at which a line with this angle ends, mm. `apart_mm`: distance between both front faces.
    [[nodiscard]] constexpr double mm(double cosine, double apart_mm) const {
        if (is_fixed()) return typical_mm_;
        const double slant = cosine > min_cosine ? cosine : min_cosine;
        return mean(length_mm_, (per_mm_ + 4 / (apart_mm + length_mm_)) / slant);
    }
    /// Where one number has to do for all lines: of a line through the axis, at a right angle to it.
    [[nodiscard]] constexpr double typical_mm() const { return typical_mm_; }
    [[nodiscard]] constexpr bool is_fixed() const { return !(length_mm_ > 0); }
    /// The same for the same depths: "4.8", or "absorption at 0.83 per cm".
    [[nodiscard]] std::string name() const;
    /// For a sentence about where photons interact: "4.8 mm behind the front face", or the same of lines
    /// through the axis, and that it is less at an angle.
    [[nodiscard]] std::string text() const;

  private:
    constexpr DepthOfInteraction(double length_mm, double per_mm, double typical_mm)
        : length_mm_(length_mm), per_mm_(per_mm), typical_mm_(typical_mm) {}

    /// The mean of a density exp(-per_mm t) from 0 to the length. Langevin's function by its continued
    /// fraction y / (3 + y^2 / (5 + y^2 / (7 + ...))), to 1e-4: without an exponential the CPU and a GPU
    /// agree in every bit, and nothing cancels near 0.
    static constexpr double mean(double length_mm, double per_mm) {
        const double y = length_mm * per_mm / 2;
        if (y > 8) return 1 / per_mm;
        double before = 0;
        double above = y;
        double below_before = 1;
        double below = 3;
        for (int odd = 5; odd <= last_odd; odd += 2) {
            const double next = odd * above + y * y * before;
            const double next_below = odd * below + y * y * below_before;
            before = above;
            above = next;
            below_before = below;
            below = next_below;
        }
        return length_mm / 2 * (1 - above / below);
    }

    static constexpr double min_cosine = 0.1;
    static constexpr int last_odd = 17;
    double length_mm_;  // 0: the same for all lines
    double per_mm_;
    double typical_mm_;
};

/// The points at which the line between two crystals ends, mm.
struct LineEnds {
    Vector3 a;
    Vector3 b;
};
constexpr double square_of_distance(const CrystalPlace& a, const CrystalPlace& b) {
    double squares = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const double along = a.front_centre_mm[axis] - b.front_centre_mm[axis];
        squares += along * along;
    }
    return squares;
}
/// `apart_mm`: the root of square_of_distance(), which code for a GPU takes by its own function.
constexpr LineEnds line_ends(const CrystalPlace& a, const CrystalPlace& b, const DepthOfInteraction& depth,
                             double apart_mm) {
    double at_a = 0;
    double at_b = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const double along = a.front_centre_mm[axis] - b.front_centre_mm[axis];
        at_a += along * a.outward[axis];
        at_b -= along * b.outward[axis];
    }
    const double depth_a = depth.mm(at_a / apart_mm, apart_mm);
    const double depth_b = depth.mm(at_b / apart_mm, apart_mm);
    LineEnds ends{a.front_centre_mm, b.front_centre_mm};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        ends.a[axis] += depth_a * a.outward[axis];
        ends.b[axis] += depth_b * b.outward[axis];
    }
    return ends;
}
inline LineEnds line_ends(const CrystalPlace& a, const CrystalPlace& b, const DepthOfInteraction& depth) {
    return line_ends(a, b, depth, std::sqrt(square_of_distance(a, b)));
}

/// The crystals of a scanner, and where in them its lines end.
struct LineGeometry {
    std::vector<CrystalPlace> places;  ///< [crystal]
    DepthOfInteraction depth;

    LineGeometry(const Scanner& scanner, const DepthOfInteraction& depth);
    [[nodiscard]] LineEnds ends(std::uint32_t a, std::uint32_t b) const {
        return line_ends(places[a], places[b], depth);
    }
};

}  // namespace petacq::config

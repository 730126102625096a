// How deep in the crystals photons interact, and so where the lines between crystals end.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"

namespace petacq::config {

struct CrystalLayer;

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
    /// By length and material of the crystals of a ring.
    explicit DepthOfInteraction(const Dimensions& dimensions);
    /// By length and material of one kind of crystals. In a layer behind others a photon begins at the front
    /// of that layer: what the layers before it attenuate changes how many arrive there, not where they
    /// interact. `typical_apart_mm`: between both front faces of a line through the axis.
    DepthOfInteraction(const CrystalLayer& layer, double typical_apart_mm);
    /// The same for all lines.
    static constexpr DepthOfInteraction fixed(double mm) { return {0, 0, mm}; }
    /// fixed() if there is a value, else by length and material. Throws Error, naming the option --depth-mm,
    /// for a value outside the crystal.
    static DepthOfInteraction of(const Dimensions& dimensions, std::optional<double> mm);
    /// The same for a scanner of either form. If it has several kinds of crystals, this one is that of most
    /// of them, and its typical depth the mean of all: LineGeometry has the depth of each.
    static DepthOfInteraction of(const Scanner& scanner, std::optional<double> mm);

    /// The depth at which a line with this angle ends, mm. `apart_mm`: distance between both front faces.
    [[nodiscard]] constexpr double mm(double cosine, double apart_mm) const {
        if (is_fixed()) return typical_mm_;
        const double slant = cosine > min_cosine ? cosine : min_cosine;
        return mean(length_mm_, (per_mm_ + 4 / (apart_mm + length_mm_)) / slant);
    }
    /// How deep the photons of one direction are absorbed, with a density of exp(-m t / cosine): the mean of
    /// that depth, mm, and its second and third moments around it. All photons of a direction are counted, in
    /// whichever crystal they are absorbed, and so nothing takes the place of the inverse square. At an angle
    /// deep parts of a crystal attenuate as if m were less than mu: photons reach them through gaps between
    /// modules, and a line that ends deeper at one side is steeper. Both grow with the square of the sine, by
    /// which
    ///     m = mu / (1 + 3/2 sine^2 L / (distance + L)).
    /// The 3/2 is fitted to the places of points in images of simulated rings of long crystals.
    struct DepthMoments {
        double mean;
        double variance;
        double third;
    };
    [[nodiscard]] constexpr DepthMoments moments(double cosine, double apart_mm) const {
        if (is_fixed()) return {typical_mm_, 0, 0};
        const double slant = cosine > min_cosine ? cosine : min_cosine;
        const double less = 1 + 1.5 * (1 - slant * slant) * length_mm_ / (apart_mm + length_mm_);
        const double per_mm = per_mm_ / (slant * less);
        const double half = length_mm_ / 2;
        const double y = half * per_mm;
        if (y > most_y) return {1 / per_mm, 1 / (per_mm * per_mm), 2 / (per_mm * per_mm * per_mm)};
        // Langevin's function and its derivatives are the cumulants of an exponential density from -1 to 1.
        const double l = langevin(y);
        const double first = 1 - l * l - 2 * l / y;
        const double second = 2 * (l / y - first) / y - 2 * l * first;
        return {half * (1 - l), half * half * first, -half * half * half * second};
    }
    /// Where one number has to do for all lines: of a line through the axis, at a right angle to it.
    [[nodiscard]] constexpr double typical_mm() const { return typical_mm_; }
    [[nodiscard]] constexpr bool is_fixed() const { return !(length_mm_ > 0); }
    /// The same depths for all lines.
    [[nodiscard]] constexpr bool same_as(const DepthOfInteraction& other) const {
        return length_mm_ == other.length_mm_ && per_mm_ == other.per_mm_ &&
               (!is_fixed() || typical_mm_ == other.typical_mm_);
    }
    /// The same for the same depths: "4.8", or "absorption at 0.83 per cm".
    [[nodiscard]] std::string name() const;
    /// For a sentence about where photons interact: "4.8 mm behind the front face", or the same of lines
    /// through the axis, and that it is less at an angle.
    [[nodiscard]] std::string text() const;

  private:
    constexpr DepthOfInteraction(double length_mm, double per_mm, double typical_mm)
        : length_mm_(length_mm), per_mm_(per_mm), typical_mm_(typical_mm) {}

    /// The mean of a density exp(-per_mm t) from 0 to the length.
    static constexpr double mean(double length_mm, double per_mm) {
        const double y = length_mm * per_mm / 2;
        return y > most_y ? 1 / per_mm : length_mm / 2 * (1 - langevin(y));
    }
    /// Langevin's function by its continued fraction y / (3 + y^2 / (5 + y^2 / (7 + ...))), to 1e-4: without
    /// an exponential the CPU and a GPU agree in every bit, and nothing cancels near 0.
    static constexpr double langevin(double y) {
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
        return above / below;
    }

    static constexpr double min_cosine = 0.1;
    static constexpr double most_y = 8;  // beyond it the far end of the crystal does not matter
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
/// The line between two crystals makes an angle with the length of each; these are the cosines of both
/// angles. `apart_mm`: the root of square_of_distance(), which code for a GPU takes by its own function.
struct Cosines {
    double a;
    double b;
};
constexpr Cosines cosines_of(const CrystalPlace& a, const CrystalPlace& b, double apart_mm) {
    double at_a = 0;
    double at_b = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const double along = a.front_centre_mm[axis] - b.front_centre_mm[axis];
        at_a += along * a.outward[axis];
        at_b -= along * b.outward[axis];
    }
    return {at_a / apart_mm, at_b / apart_mm};
}
inline LineEnds line_ends(const CrystalPlace& a, const CrystalPlace& b, const DepthOfInteraction& depth_a,
                          const DepthOfInteraction& depth_b) {
    const double apart_mm = std::sqrt(square_of_distance(a, b));
    const Cosines cosines = cosines_of(a, b, apart_mm);
    return {point_at_depth(a, depth_a.mm(cosines.a, apart_mm)),
            point_at_depth(b, depth_b.mm(cosines.b, apart_mm))};
}
inline LineEnds line_ends(const CrystalPlace& a, const CrystalPlace& b, const DepthOfInteraction& depth) {
    return line_ends(a, b, depth, depth);
}

/// The depth of each crystal; for device code. Valid as long as what it points to.
struct DepthOfEach {
    DepthOfInteraction only;                         ///< of all crystals, where there is but one kind
    const DepthOfInteraction* kinds = nullptr;       ///< [kind]
    const std::uint16_t* kind_of_crystal = nullptr;  ///< [crystal]; null: one kind

    [[nodiscard]] constexpr const DepthOfInteraction& of(std::uint32_t crystal) const {
        return kind_of_crystal == nullptr ? only : kinds[kind_of_crystal[crystal]];
    }
};

/// The crystals of a scanner, and where in them its lines end. A kind of crystals has one length and one
/// attenuation.
struct LineGeometry {
    std::vector<CrystalPlace> places;  ///< [crystal]
    DepthOfInteraction depth;          ///< that of DepthOfInteraction::of()
    std::vector<DepthOfInteraction> kinds;
    std::vector<std::uint16_t> kind_of_crystal;  ///< empty: all crystals are of one kind

    /// A fixed depth is that of all crystals.
    LineGeometry(const Scanner& scanner, const DepthOfInteraction& depth);
    /// Puts the crystals at each of these angles, one after the other: crystal c at angle i becomes i times
    /// the number of crystals, plus c.
    void turn_to(const std::vector<double>& radians);
    [[nodiscard]] DepthOfEach depths() const {
        return {kinds.front(), kinds.data(), kind_of_crystal.empty() ? nullptr : kind_of_crystal.data()};
    }
    [[nodiscard]] const DepthOfInteraction& depth_of(std::uint32_t crystal) const {
        return kinds[kind_of_crystal.empty() ? 0 : kind_of_crystal[crystal]];
    }
    [[nodiscard]] LineEnds ends(std::uint32_t a, std::uint32_t b) const {
        return line_ends(places[a], places[b], depth_of(a), depth_of(b));
    }
};

}  // namespace petacq::config

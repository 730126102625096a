#include "tools/normalisation/symmetry.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>

namespace petacq::normalisation {

namespace {

using config::Vector3;

constexpr double tolerance_mm = 1e-3;
constexpr double tolerance_cosine = 1e-6;

/// [row][column]
using Transform = std::array<Vector3, 3>;

Transform rotation(double angle) {
    const double c = std::cos(angle);
    const double s = std::sin(angle);
    return {{{c, -s, 0}, {s, c, 0}, {0, 0, 1}}};
}

/// At the plane through the axis and the direction of this angle.
Transform reflection(double angle) {
    const double c = std::cos(2 * angle);
    const double s = std::sin(2 * angle);
    return {{{c, s, 0}, {s, -c, 0}, {0, 0, 1}}};
}

constexpr Transform upside_down{{{1, 0, 0}, {0, 1, 0}, {0, 0, -1}}};

double dot(const Vector3& a, const Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

Vector3 apply(const Transform& t, const Vector3& v) {
    return {dot(t[0], v), dot(t[1], v), dot(t[2], v)};
}

double angle_of(const config::Module& m) {
    const bool on_axis = std::hypot(m.front_mm[0], m.front_mm[1]) < tolerance_mm;
    const Vector3& v = on_axis ? m.outward : m.front_mm;
    return std::atan2(v[1], v[0]);
}

bool is_even(const config::CrystalRow& row) {
    for (std::size_t i = 0; i < row.centres.size(); ++i) {
        const std::size_t mirror = row.centres.size() - 1 - i;
        if (std::abs(row.centres[i] + row.centres[mirror]) > tolerance_mm ||
            std::abs(row.sizes[i] - row.sizes[mirror]) > tolerance_mm)
            return false;
    }
    return true;
}

/// Whether the crystals of a type are the same in both directions.
struct Reversible {
    bool y = true;
    bool z = true;
};

class SymmetrySearch {
  public:
    explicit SymmetrySearch(const config::Arrangement& arrangement)
        : modules_(arrangement.modules()), by_x_(modules_.size()) {
        for (const config::ModuleType& type : arrangement.types()) {
            Reversible both;
            for (const config::CrystalLayer& layer : type.layers) {
                both.y = both.y && is_even(layer.y);
                both.z = both.z && is_even(layer.z);
            }
            reversible_.push_back(both);
        }
        std::iota(by_x_.begin(), by_x_.end(), 0U);
        std::sort(by_x_.begin(), by_x_.end(), [&](std::uint32_t a, std::uint32_t b) {
            return modules_[a].front_mm[0] < modules_[b].front_mm[0];
        });
    }

    /// Absent unless each module arrives at one of its kind.
    [[nodiscard]] std::optional<Symmetry> symmetry(const Transform& t) const {
        Symmetry out;
        out.reserve(modules_.size());
        for (const config::Module& m : modules_) {
            const auto image = image_of(m, t);
            if (!image) return std::nullopt;
            out.push_back(*image);
        }
        return out;
    }

    /// That by the smallest angle; the identity if there is no other.
    [[nodiscard]] Symmetry smallest_rotation() const {
        for (std::size_t n = modules_.size(); n > 1; --n)
            if (auto found = symmetry(rotation(2 * std::numbers::pi / static_cast<double>(n)))) return *found;
        return *symmetry(rotation(0));
    }
    /// At a plane through the axis.
    [[nodiscard]] std::optional<Symmetry> any_reflection() const {
        for (const config::Module& m : modules_)
            if (auto found = symmetry(reflection((angle_of(modules_[0]) + angle_of(m)) / 2))) return found;
        return std::nullopt;
    }

  private:
    [[nodiscard]] std::optional<ModuleImage> image_of(const config::Module& m, const Transform& t) const {
        const Vector3 front = apply(t, m.front_mm);
        const Vector3 outward = apply(t, m.outward);
        const Vector3 along_y = apply(t, m.along_y);
        const Vector3 along_z = apply(t, m.along_z);
        const auto first =
            std::lower_bound(by_x_.begin(), by_x_.end(), front[0] - tolerance_mm,
                             [&](std::uint32_t i, double x) { return modules_[i].front_mm[0] < x; });
        for (auto at = first; at != by_x_.end(); ++at) {
            const config::Module& to = modules_[*at];
            if (to.front_mm[0] > front[0] + tolerance_mm) break;
            if (to.type != m.type || std::abs(to.front_mm[1] - front[1]) > tolerance_mm ||
                std::abs(to.front_mm[2] - front[2]) > tolerance_mm ||
                dot(to.outward, outward) < 1 - tolerance_cosine)
                continue;
            const double y = dot(to.along_y, along_y);
            const double z = dot(to.along_z, along_z);
            if (std::abs(y) < 1 - tolerance_cosine || std::abs(z) < 1 - tolerance_cosine) continue;
            const Reversible& reversible = reversible_[m.type];
            if ((y < 0 && !reversible.y) || (z < 0 && !reversible.z)) continue;
            return ModuleImage{*at, y < 0, z < 0};
        }
        return std::nullopt;
    }

    const std::vector<config::Module>& modules_;
    std::vector<std::uint32_t> by_x_;
    std::vector<Reversible> reversible_;  // [type]
};

/// One after the other.
Symmetry product(const Symmetry& first, const Symmetry& second) {
    Symmetry out;
    out.reserve(first.size());
    for (const ModuleImage& i : first) {
        const ModuleImage& next = second[i.module];
        out.push_back({next.module, i.reversed_y != next.reversed_y, i.reversed_z != next.reversed_z});
    }
    return out;
}

bool is_identity(const Symmetry& s) {
    for (std::uint32_t m = 0; m < s.size(); ++m)
        if (s[m].module != m || s[m].reversed_y || s[m].reversed_z) return false;
    return true;
}

/// Adds the product of each with a reflection.
void double_with(const std::optional<Symmetry>& reflection, std::vector<Symmetry>& all) {
    if (!reflection) return;
    const std::size_t count = all.size();
    for (std::size_t i = 0; i < count; ++i)
        all.push_back(product(all[i], *reflection));
}

}  // namespace

std::vector<Symmetry> symmetries_of(const config::Arrangement& arrangement) {
    if (arrangement.modules().size() > max_modules) return {};
    const SymmetrySearch search(arrangement);
    std::vector<Symmetry> all{*search.symmetry(rotation(0))};
    const Symmetry turn = search.smallest_rotation();
    for (Symmetry next = turn; !is_identity(next); next = product(next, turn))
        all.push_back(next);
    double_with(search.any_reflection(), all);
    double_with(search.symmetry(upside_down), all);
    return all;
}

}  // namespace petacq::normalisation

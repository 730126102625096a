#include "tools/petlm/export/geometry/pair_angle.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <utility>

#include "config/scanner/arrangement.hpp"

namespace petacq::petlm {
namespace {

/// What decides whether modules pair, and the direction of their crystals.
using Kind = std::pair<std::uint32_t, config::Vector3>;

std::set<Kind> kinds_of_modules(const config::Scanner& scanner) {
    std::set<Kind> kinds;
    for (const config::Module& module : scanner.arrangement->modules())
        kinds.emplace(scanner.geometry.pairs->crystals[module.first_crystal].group, module.outward);
    return kinds;
}

double degrees_between(const config::Vector3& a, const config::Vector3& b) {
    const double cosine = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    return std::acos(std::clamp(cosine, -1.0, 1.0)) * 180 / std::numbers::pi;
}

}  // namespace

bool groups_pair(const config::PairGeometry& pairs, std::uint32_t a, std::uint32_t b,
                 std::uint32_t min_module_difference) {
    if (!pairs.may_pair[a * pairs.groups.size() + b]) return false;
    if (min_module_difference == 0) return true;
    const std::uint32_t of = pairs.groups[a].around_of;
    const std::uint32_t straight = pairs.groups[a].around > pairs.groups[b].around
                                       ? pairs.groups[a].around - pairs.groups[b].around
                                       : pairs.groups[b].around - pairs.groups[a].around;
    return std::min(straight, of - straight) >= min_module_difference;
}

PairAngle pair_angle(const ExportSource& source, const config::Scanner& scanner) {
    const auto& rules = source.coverage().rules.coincidence;
    const std::uint32_t modules = rules ? rules->min_module_difference.value_or(0) : 0;
    if (scanner.is_ring()) {
        // Between the largest excluded angle and the smallest accepted one.
        return {modules != 0 ? (modules - 0.5) * 360 / scanner.geometry.modules_in_ring() : 0, true};
    }
    const std::set<Kind> kinds = kinds_of_modules(scanner);
    double refused = 0;
    double accepted = 180;
    for (auto a = kinds.begin(); a != kinds.end(); ++a) {
        for (auto b = a; b != kinds.end(); ++b) {
            const double apart = degrees_between(a->second, b->second);
            if (groups_pair(*scanner.geometry.pairs, a->first, b->first, modules)) {
                accepted = std::min(accepted, apart);
            } else {
                refused = std::max(refused, apart);
            }
        }
    }
    constexpr double rounding = 1e-4;
    if (refused < accepted - rounding) return {refused > 0 ? (refused + accepted) / 2 : accepted / 2, true};
    return {std::max(0.0, accepted - rounding), false};
}

}  // namespace petacq::petlm

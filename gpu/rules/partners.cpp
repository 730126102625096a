#include "gpu/rules/partners.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>

#include "config/base/error.hpp"
#include "config/scanner/arrangement.hpp"
#include "gpu/rules/pair_rule.hpp"

namespace petacq::gpu {

namespace {

using Crystal = config::PairGeometry::Crystal;

/// The front faces of the crystals of a module lie in a sphere.
struct Sphere {
    Crystal middle;
    std::uint32_t radius_um = 0;
};

/// Lowest and highest value.
struct Span {
    std::int64_t low = std::numeric_limits<std::int64_t>::max();
    std::int64_t high = std::numeric_limits<std::int64_t>::min();
    void add(std::int64_t value) {
        low = std::min(low, value);
        high = std::max(high, value);
    }
    [[nodiscard]] std::int64_t middle() const { return low + (high - low) / 2; }
    /// 0 if they have a value in common.
    [[nodiscard]] std::int64_t gap(const Span& other) const {
        return std::max<std::int64_t>({low - other.high, other.low - high, 0});
    }
};

struct ModuleFronts {
    std::uint32_t first = 0;  ///< crystal
    std::uint32_t end = 0;
    Sphere sphere;
    Span z;
    Span ring;
};

class PartnerSearch {
  public:
    PartnerSearch(const config::Scanner& scanner, const CoincidenceRules& rules)
        : rule_(PairRule::of(scanner.geometry, rules)) {
        const config::Arrangement& arrangement = *scanner.arrangement;
        for (const config::Module& m : arrangement.modules()) {
            modules_.push_back(
                fronts_of(m.first_crystal, m.first_crystal + arrangement.type_of(m).crystal_count()));
        }
    }

    [[nodiscard]] std::size_t modules() const { return modules_.size(); }
    /// Among the other modules.
    [[nodiscard]] bool has_partner(std::size_t module) const {
        // Those across come first: most modules pair with them.
        for (std::size_t k = 0; k < modules(); ++k) {
            const std::size_t other = (module + modules() / 2 + k) % modules();
            if (other != module && pair(modules_[module], modules_[other])) return true;
        }
        return false;
    }
    [[nodiscard]] bool pairs_with_itself(std::size_t module) const {
        return pair(modules_[module], modules_[module]);
    }

  private:
    [[nodiscard]] ModuleFronts fronts_of(std::uint32_t first, std::uint32_t end) const {
        ModuleFronts fronts;
        fronts.first = first;
        fronts.end = end;
        Span x;
        Span y;
        for (std::uint32_t i = first; i < end; ++i) {
            const Crystal& c = rule_.crystals[i];
            x.add(c.x_um);
            y.add(c.y_um);
            fronts.z.add(c.z_um);
            fronts.ring.add(c.ring);
        }
        fronts.sphere.middle = {rule_.crystals[first].group, 0, static_cast<std::int32_t>(x.middle()),
                                static_cast<std::int32_t>(y.middle()),
                                static_cast<std::int32_t>(fronts.z.middle())};
        const auto half = [](const Span& s) { return static_cast<double>(s.high - s.low) / 2 + 1; };
        fronts.sphere.radius_um =
            static_cast<std::uint32_t>(std::ceil(std::hypot(half(x), half(y), half(fronts.z))));
        return fronts;
    }

    /// Whether a line from one sphere to another may meet the field of view: each of its points is as near to
    /// the line between their middles as the larger one is wide.
    [[nodiscard]] bool view_may_be_met(const Sphere& a, const Sphere& b) const {
        config::FieldOfView view = rule_.field_of_view;
        if (view.half_x_um == 0) return true;
        const std::uint32_t radius = std::max(a.radius_um, b.radius_um);
        view.half_x_um += radius;
        if (view.half_y_um != 0) view.half_y_um += radius;
        view.half_length_um += radius;
        return line_meets(view, a.middle, b.middle);
    }

    [[nodiscard]] bool pair(const ModuleFronts& a, const ModuleFronts& b) const {
        if (!rule_.groups_good(a.sphere.middle.group, b.sphere.middle.group) ||
            a.z.gap(b.z) > rule_.max_z_difference_um || a.ring.gap(b.ring) > rule_.max_ring_difference ||
            !view_may_be_met(a.sphere, b.sphere))
            return false;
        for (std::uint32_t i = a.first; i < a.end; ++i) {
            if (!view_may_be_met({rule_.crystals[i], 0}, b.sphere)) continue;
            for (std::uint32_t k = b.first; k < b.end; ++k)
                if (i != k && rule_.crystals_good(i, k)) return true;
        }
        return false;
    }

    LongFormRule rule_;
    std::vector<ModuleFronts> modules_;
};

double mm(std::uint32_t um) {
    return um / 1000.0;
}

/// The conditions that a pair of crystals has to meet besides those on the directions and groups of modules.
std::string conditions(const config::PairGeometry& pairs, const CoincidenceRules& rules) {
    std::vector<std::string> all;
    if (rules.min_module_difference > 0)
        all.push_back(fmt::format("coincidence.min_module_difference = {}", rules.min_module_difference));
    if (rules.max_ring_difference != UINT32_MAX)
        all.push_back(fmt::format("coincidence.max_ring_difference = {}", rules.max_ring_difference));
    if (pairs.max_z_difference_um)
        all.push_back(fmt::format("max_z_difference_mm = {:g}", mm(*pairs.max_z_difference_um)));
    if (pairs.field_of_view) {
        const config::FieldOfView& v = *pairs.field_of_view;
        all.push_back(v.is_cylinder()
                          ? fmt::format("a line through the cylinder of {:g} mm radius and {:g} mm length "
                                        "around the middle of the scanner",
                                        mm(v.half_x_um), 2 * mm(v.half_length_um))
                          : fmt::format("a line through the box of {:g} x {:g} x {:g} mm around the middle "
                                        "of the scanner",
                                        2 * mm(v.half_x_um), 2 * mm(v.half_y_um), 2 * mm(v.half_length_um)));
    }
    std::string text;
    for (const std::string& one : all)
        text += (text.empty() ? "" : ", ") + one;
    return text.empty() ? "two crystals of modules that may pair" : text;
}

/// Where the front faces are.
std::string places(const config::PairGeometry& pairs) {
    std::array<Span, 3> spans;
    for (const Crystal& c : pairs.crystals) {
        spans[0].add(c.x_um);
        spans[1].add(c.y_um);
        spans[2].add(c.z_um);
    }
    const auto text = [](const Span& s) {
        return fmt::format("{:.4g} to {:.4g}", static_cast<double>(s.low) / 1000,
                           static_cast<double>(s.high) / 1000);
    };
    return fmt::format("x = {}, y = {} and z = {} mm", text(spans[0]), text(spans[1]), text(spans[2]));
}

bool any_good_pair(const config::Scanner& scanner, const CoincidenceRules& rules) {
    const PartnerSearch search(scanner, rules);
    for (std::size_t m = 0; m < search.modules(); ++m)
        if (search.has_partner(m) || search.pairs_with_itself(m)) return true;
    return false;
}

/// The key that rules out the last good pair: of the scanner description, if that alone leaves none, or of
/// the configuration.
const char* key_at_fault(const config::Scanner& scanner, const CoincidenceRules& rules) {
    if (!any_good_pair(scanner, {})) return "/good_pairs";
    CoincidenceRules relaxed = rules;
    relaxed.min_module_difference = 0;
    return any_good_pair(scanner, relaxed) ? "/coincidence/min_module_difference"
                                           : "/coincidence/max_ring_difference";
}

}  // namespace

std::vector<std::uint32_t> modules_without_partner(const config::Scanner& scanner,
                                                   const CoincidenceRules& rules) {
    std::vector<std::uint32_t> alone;
    if (scanner.is_ring()) return alone;
    const PartnerSearch search(scanner, rules);
    for (std::uint32_t m = 0; m < search.modules(); ++m)
        if (!search.has_partner(m)) alone.push_back(m);
    return alone;
}

void check_any_good_pair(const config::Scanner& scanner, const CoincidenceRules& rules) {
    if (scanner.is_ring() || !rules.search || any_good_pair(scanner, rules)) return;
    throw config::Error(
        fmt::format("{}: expected conditions that some pair of crystals meets, found none with {}; "
                    "the front faces of the crystals are at {}",
                    key_at_fault(scanner, rules), conditions(*scanner.geometry.pairs, rules),
                    places(*scanner.geometry.pairs)));
}

}  // namespace petacq::gpu

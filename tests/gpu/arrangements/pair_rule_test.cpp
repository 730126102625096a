// The rule of good pairs of the long form against the description of the scanner, and lines at the borders of
// the field of view.
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/configuration.hpp"
#include "config/scanner/arrangement.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "tests/gpu/base/random_arrangement.hpp"
#include "tests/gpu/base/reference_line.hpp"
#include "tests/gpu/reference.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

using Point = std::array<std::int64_t, 3>;  // micrometres

Point front_of(const config::Arrangement& arrangement, std::uint32_t crystal) {
    const config::CrystalPlace place = arrangement.place(crystal);
    Point out{};
    for (std::size_t i = 0; i < 3; ++i)
        out[i] = std::lround(place.front_centre_mm[i] * 1000);
    return out;
}

config::PairGeometry::Crystal at(const Point& p) {
    return {0, 0, static_cast<std::int32_t>(p[0]), static_cast<std::int32_t>(p[1]),
            static_cast<std::int32_t>(p[2])};
}

std::uint32_t um(const json& mm, double part = 1) {
    return static_cast<std::uint32_t>(std::lround(mm.get<double>() * part * 1000));
}

double angle_of(const config::Module& module) {
    return std::atan2(module.outward[1], module.outward[0]) * 180 / std::acos(-1.0);
}

/// The rule as the description states it, from the places of the crystals.
class Described {
  public:
    Described(const config::Scanner& scanner, const std::string& description,
              const gpu::CoincidenceRules& rules)
        : rules_(rules) {
        const json pairs = json::parse(description).value("good_pairs", json::object());
        const config::Arrangement& arrangement = *scanner.arrangement;
        std::set<std::int64_t> heights;
        for (std::uint32_t i = 0; i < arrangement.crystal_count(); ++i) {
            const config::Module& m = arrangement.modules()[arrangement.address(i).module];
            crystals_.push_back({m.name, angle_of(m), m.around, front_of(arrangement, i), 0});
            heights.insert(crystals_.back().front[2]);
        }
        const std::map<std::int64_t, std::uint32_t> rings = rings_of(heights);
        for (Crystal& crystal : crystals_)
            crystal.ring = rings.at(crystal.front[2]);
        if (pairs.contains("between")) {
            for (const json& pair : pairs["between"])
                between_.emplace(pair[0].get<std::string>(), pair[1].get<std::string>());
        }
        min_angle_ = pairs.value("min_angle_deg", 0.0);
        if (pairs.contains("max_z_difference_mm")) max_z_ = um(pairs["max_z_difference_mm"]);
        if (pairs.contains("cylinder")) {
            view_ = {um(pairs["cylinder"]["radius_mm"]), 0, um(pairs["cylinder"]["length_mm"], 0.5)};
        } else if (pairs.contains("box")) {
            view_ = {um(pairs["box"]["x_mm"], 0.5), um(pairs["box"]["y_mm"], 0.5),
                     um(pairs["box"]["z_mm"], 0.5)};
        }
    }

    [[nodiscard]] bool good(std::uint32_t a, std::uint32_t b) const {
        const Crystal& p = crystals_[a];
        const Crystal& q = crystals_[b];
        if (a == b) return false;
        if (!between_.empty() && !between_.contains({p.group, q.group}) &&
            !between_.contains({q.group, p.group}))
            return false;
        const double turn = std::abs(p.angle - q.angle);
        if (std::min(turn, 360 - turn) < min_angle_ - 1e-6) return false;
        if (rules_.min_module_difference > 0) {
            const auto one_way = static_cast<std::uint32_t>(
                std::abs(std::int64_t{p.around->index} - std::int64_t{q.around->index}));
            if (std::min(one_way, p.around->count - one_way) < rules_.min_module_difference) return false;
        }
        if (std::max(p.ring, q.ring) - std::min(p.ring, q.ring) > rules_.max_ring_difference) return false;
        if (max_z_ && std::abs(p.front[2] - q.front[2]) > *max_z_) return false;
        return !view_ || reference_line_meets(*view_, at(p.front), at(q.front));
    }

  private:
    struct Crystal {
        std::string group;
        double angle;
        std::optional<config::Around> around;
        Point front;
        std::uint32_t ring;
    };
    /// [place along the axis] its number; places a micrometre apart are one.
    static std::map<std::int64_t, std::uint32_t> rings_of(const std::set<std::int64_t>& heights) {
        std::map<std::int64_t, std::uint32_t> rings;
        std::uint32_t places = 0;
        std::int64_t last = INT64_MIN / 2;
        for (const std::int64_t height : heights) {
            if (height > last + 1) {
                last = height;
                ++places;
            }
            rings.emplace(height, places);
        }
        return rings;
    }

    gpu::CoincidenceRules rules_;
    std::vector<Crystal> crystals_;
    std::set<std::pair<std::string, std::string>> between_;
    double min_angle_ = 0;
    std::optional<std::int64_t> max_z_;
    std::optional<config::FieldOfView> view_;
};

}  // namespace

TEST_CASE("pair rule: that of any scanner is what its description says") {
    Rng rng(31);
    std::size_t good = 0;
    std::size_t refused = 0;
    std::size_t with_view = 0;
    for (int round = 0; round < 40; ++round) {
        const RandomArrangement random = random_arrangement(rng, 150);
        const config::Geometry& g = random.scanner.geometry;
        const gpu::CoincidenceRules rules = random_limits(g, rng);
        const Described described(random.scanner, random.description, rules);
        const gpu::PairRule rule = gpu::PairRule::of(g, rules);
        with_view += g.pairs->field_of_view ? 1 : 0;
        for (std::uint32_t a = 0; a < g.crystal_count(); ++a) {
            for (std::uint32_t b = 0; b < g.crystal_count(); ++b) {
                const bool expected = described.good(a, b);
                (expected ? good : refused) += 1;
                if (rule.good(a, b) == expected && reference_good(g, rules, a, b) == expected) continue;
                FAIL("crystals " << a << " and " << b << (expected ? " make" : " make no")
                                 << " good pair, min_module_difference " << rules.min_module_difference
                                 << ", max_ring_difference " << rules.max_ring_difference << "\n"
                                 << random.description);
            }
        }
    }
    CHECK(good > 10'000);
    CHECK(refused > 10'000);
    CHECK(with_view > 10);
}

TEST_CASE("pair rule: that of each example scanner is what its description and configuration say") {
    const std::string name = GENERATE("box", "hexagon", "insert", "monolithic", "partial-ring", "phoswich",
                                      "total-body", "two-heads", "two-rings", "unequal-blocks");
    CAPTURE(name);
    const std::string path = PETACQ_SOURCE_DIR "/config/examples/scanners/" + name;
    std::ifstream file(path + ".scanner.json");
    const std::string description{std::istreambuf_iterator<char>(file), {}};
    const config::Scanner scanner = config::load_scanner(path + ".scanner.json");
    const config::Geometry& g = scanner.geometry;
    gpu::CoincidenceRules rules;
    rules.min_module_difference =
        config::load_configuration(path + ".json").coincidence.min_module_difference.value_or(0);
    const Described described(scanner, description, rules);
    const gpu::PairRule rule = gpu::PairRule::of(g, rules);
    Rng rng(33);
    std::size_t good = 0;
    constexpr std::size_t pairs = 20'000;
    for (std::size_t i = 0; i < pairs; ++i) {
        const auto a = static_cast<std::uint32_t>(rng.index(g.crystal_count()));
        const auto b = static_cast<std::uint32_t>(rng.index(g.crystal_count()));
        const bool expected = described.good(a, b);
        good += expected ? 1 : 0;
        if (rule.good(a, b) == expected) continue;
        FAIL("crystals " << a << " and " << b << (expected ? " make a" : " make no") << " good pair");
    }
    CHECK(good > pairs / 20);
    CHECK(good < pairs * 19 / 20);
}

TEST_CASE("pair rule: a line that only touches the field of view meets it") {
    const auto meets = [](const config::FieldOfView& view, const Point& a, const Point& b) {
        const bool found = gpu::line_meets(view, at(a), at(b));
        CHECK(found == gpu::line_meets(view, at(b), at(a)));
        CHECK(found == reference_line_meets(view, at(a), at(b)));
        return found;
    };
    const config::FieldOfView cylinder{5000, 0, 2000};
    CHECK(meets(cylinder, {-50'000, 5000, 0}, {50'000, 5000, 0}));
    CHECK_FALSE(meets(cylinder, {-50'000, 5001, 0}, {50'000, 5001, 0}));
    // A tangent at 3 : 4, and one a micrometre further out at one end.
    CHECK(meets(cylinder, {3000 + 40'000, 4000 - 30'000, 0}, {3000 - 40'000, 4000 + 30'000, 0}));
    CHECK_FALSE(meets(cylinder, {3000 + 40'001, 4000 - 30'000, 0}, {3000 - 40'000, 4000 + 30'000, 0}));
    // The end planes; a line along the axis; one that passes the rim; one that ends before it.
    CHECK(meets(cylinder, {-50'000, 0, 2000}, {50'000, 0, 2000}));
    CHECK_FALSE(meets(cylinder, {-50'000, 0, 2001}, {50'000, 0, 2001}));
    CHECK(meets(cylinder, {5000, 0, -9000}, {5000, 0, 9000}));
    CHECK_FALSE(meets(cylinder, {5001, 0, -9000}, {5001, 0, 9000}));
    CHECK(meets(cylinder, {4000, 0, 3000}, {6000, 0, 1000}));
    CHECK_FALSE(meets(cylinder, {4000, 0, 3002}, {6000, 0, 1002}));
    CHECK_FALSE(meets(cylinder, {50'000, 0, 0}, {5001, 0, 0}));
    CHECK(meets(cylinder, {50'000, 0, 0}, {5000, 0, 0}));
    CHECK(meets(cylinder, {1000, 0, 0}, {1000, 0, 0}));
    const config::FieldOfView box{5000, 3000, 2000};
    CHECK(meets(box, {-50'000, 3000, 2000}, {50'000, 3000, 2000}));
    CHECK_FALSE(meets(box, {-50'000, 3001, 2000}, {50'000, 3001, 2000}));
    CHECK(meets(box, {5000 - 9000, 3000 + 9000, 0}, {5000 + 9000, 3000 - 9000, 0}));  // the edge
    CHECK_FALSE(meets(box, {5000 - 9000, 3000 + 9001, 0}, {5000 + 9000, 3000 - 9000, 0}));
    CHECK_FALSE(meets(box, {50'000, 0, 0}, {5001, 0, 0}));
}

TEST_CASE("pair rule: any line and field of view, near and far") {
    Rng rng(32);
    std::size_t met = 0;
    constexpr std::size_t lines = 20'000;
    for (std::size_t i = 0; i < lines; ++i) {
        // Small numbers make many lines that touch.
        const std::int32_t reach = rng.chance(0.5) ? 6 : 300'000;
        const auto some = [&] { return rng.between(-reach, reach); };
        const auto size = [&] { return static_cast<std::uint32_t>(rng.between(1, reach)); };
        const config::FieldOfView view{size(), rng.chance(0.5) ? 0 : size(), size()};
        const config::PairGeometry::Crystal a{0, 0, some(), some(), some()};
        const config::PairGeometry::Crystal b{0, 0, some(), some(), some()};
        const bool expected = reference_line_meets(view, a, b);
        met += expected ? 1 : 0;
        if (gpu::line_meets(view, a, b) == expected && gpu::line_meets(view, b, a) == expected) continue;
        FAIL("from " << a.x_um << ' ' << a.y_um << ' ' << a.z_um << " to " << b.x_um << ' ' << b.y_um << ' '
                     << b.z_um << ", field of view " << view.half_x_um << ' ' << view.half_y_um << ' '
                     << view.half_length_um);
    }
    CHECK(met > lines / 10);
    CHECK(met < lines * 9 / 10);
}

TEST_CASE("pair rule: no line is too long to be exact") {
    constexpr std::int64_t far = 200'000'000;
    const config::FieldOfView view{2'000'000, 0, 2'000'000};
    CHECK(gpu::line_meets(view, at({far, 2'000'000, -far}), at({-far, 2'000'000, far})));
    CHECK_FALSE(gpu::line_meets(view, at({far, 2'000'001, -far}), at({-far, 2'000'001, far})));
    CHECK_FALSE(gpu::line_meets(view, at({far, far, -far}), at({far, -far, far})));
    const config::FieldOfView box{2'000'000, 2'000'000, 2'000'000};
    CHECK(gpu::line_meets(box, at({far, 2'000'000, -far}), at({-far, 2'000'000, far})));
    CHECK_FALSE(gpu::line_meets(box, at({far, 2'000'001, -far}), at({-far, 2'000'001, far})));
}

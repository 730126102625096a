// Modules without a partner, against a look at every pair of crystals.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/base/error.hpp"
#include "config/scanner/arrangement.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "gpu/rules/partners.hpp"
#include "tests/gpu/base/random_arrangement.hpp"
#include "tests/gpu/reference.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

struct Partners {
    std::vector<std::uint32_t> alone;  ///< modules that have none
    bool any_pair = false;             ///< within a module or not
};

Partners by_all_pairs(const config::Scanner& scanner, const gpu::CoincidenceRules& rules) {
    const config::Arrangement& arrangement = *scanner.arrangement;
    Partners partners;
    std::vector<bool> paired(arrangement.modules().size());
    for (std::uint32_t a = 0; a < arrangement.crystal_count(); ++a) {
        for (std::uint32_t b = 0; b < arrangement.crystal_count(); ++b) {
            if (a == b || !reference_good(scanner.geometry, rules, a, b)) continue;
            partners.any_pair = true;
            const std::uint32_t module = arrangement.address(a).module;
            if (module != arrangement.address(b).module) paired[module] = true;
        }
    }
    for (std::uint32_t m = 0; m < paired.size(); ++m)
        if (!paired[m]) partners.alone.push_back(m);
    return partners;
}

std::string complaint(const config::Scanner& scanner, const gpu::CoincidenceRules& rules) {
    try {
        gpu::check_any_good_pair(scanner, rules);
    } catch (const config::Error& e) {
        return e.what();
    }
    return "";
}

/// Two rows of eight modules, 100 mm apart along the axis.
json two_rows(const json& good_pairs) {
    return {{"name", "rows"},
            {"tick_ps", 10},
            {"position_size", 8},
            {"module_types", json::parse(R"([{"name": "m", "layers": [{"y": {"count": 2, "pitch_mm": 4},
                "z": {"count": 2, "pitch_mm": 4}, "length_mm": 10}]}])")},
            {"modules", json::parse(R"([{"type": "m", "ring": {"count": 8, "radius_mm": 30},
                "along_z": {"count": 2, "pitch_mm": 100}}])")},
            {"good_pairs", good_pairs}};
}

}  // namespace

TEST_CASE("partners: modules without one are those that have none among all pairs of crystals") {
    Rng rng(47);
    int all = 0;
    int some = 0;
    int none = 0;
    int within = 0;  // only pairs within modules
    for (int round = 0; round < 150; ++round) {
        const RandomArrangement random = random_arrangement(rng, 150);
        const config::Geometry& g = random.scanner.geometry;
        const gpu::CoincidenceRules rules = random_limits(g, rng);
        INFO(random.description);
        const auto expected = by_all_pairs(random.scanner, rules);
        REQUIRE(gpu::modules_without_partner(random.scanner, rules) == expected.alone);
        REQUIRE(complaint(random.scanner, rules).empty() == expected.any_pair);
        const std::size_t modules = random.scanner.arrangement->modules().size();
        ++(expected.alone.empty() ? all : expected.alone.size() < modules ? some : none);
        within += expected.any_pair && expected.alone.size() == modules;
    }
    CHECK(all > 20);
    CHECK(some > 10);
    CHECK(none > 5);
    CHECK(within > 0);
}

TEST_CASE("partners: a module that only pairs with itself has none") {
    json heads = two_rows(json::parse(R"({"between": [["one", "one"], ["two", "three"]]})"));
    heads["modules"] = json::array();
    for (const auto& [group, angle] : {std::pair("one", 0), {"two", 90}, {"three", 270}}) {
        heads["modules"].push_back(
            {{"type", "m"},
             {"group", group},
             {"panel", {{"radius_mm", 30}, {"angle_deg", angle}, {"count", 1}, {"pitch_mm", 8}}}});
    }
    CHECK(gpu::modules_without_partner(config::scanner_from_json(heads), {}) ==
          std::vector<std::uint32_t>{0});
    // The description allows pairs within the first, so it has good pairs.
    heads["good_pairs"]["between"] = json::parse(R"([["one", "one"]])");
    CHECK(complaint(config::scanner_from_json(heads), {}).empty());
}

TEST_CASE("partners: conditions without any good pair are refused with what they are") {
    const auto refused = [](const json& good_pairs, const gpu::CoincidenceRules& rules = {}) {
        return complaint(config::scanner_from_json(two_rows(good_pairs)), rules);
    };
    // The lines of each row pass the axis 50 mm from the middle.
    const json row = {{"max_z_difference_mm", 8}};
    CHECK(refused(row).empty());
    json beside = row;
    beside["cylinder"] = {{"radius_mm", 5}, {"length_mm", 20}};
    const std::string text = refused(beside);
    INFO(text);
    CHECK(contains(text,
                   "/good_pairs: expected conditions that some pair of crystals meets, found none with "
                   "max_z_difference_mm = 8, a line through the cylinder of 5 mm radius and 20 mm length "
                   "around the middle of the scanner"));
    CHECK(contains(text, "z = -52 to 52 mm"));
    beside["max_z_difference_mm"] = 100;  // from row to row
    CHECK(refused(beside).empty());
    gpu::CoincidenceRules one_row;
    one_row.max_ring_difference = 0;
    CHECK(
        contains(refused(beside, one_row), "coincidence.max_ring_difference = 0, max_z_difference_mm = 100"));
    CHECK(refused(beside, one_row).starts_with("/coincidence/max_ring_difference: expected"));
    one_row.search = false;
    CHECK(refused(beside, one_row).empty());

    // Three neighbours of a ring of twelve.
    json arc = two_rows(json::object());
    arc["modules"] = json::parse(R"([{"type": "m", "arc": {"count": 3, "of": 12, "radius_mm": 30}}])");
    gpu::CoincidenceRules opposite;
    opposite.min_module_difference = 2;
    CHECK(complaint(config::scanner_from_json(arc), opposite).empty());
    opposite.min_module_difference = 3;
    const std::string without = complaint(config::scanner_from_json(arc), opposite);
    INFO(without);
    CHECK(
        without.starts_with("/coincidence/min_module_difference: expected conditions that some pair of "
                            "crystals meets, found none with coincidence.min_module_difference = 3; "));
}

// Time offsets and the place of the source in scanners of the long form.
#include <algorithm>
#include <cmath>
#include <functional>

#include "config/base/constants.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petcal/estimate/drawn_pairs.hpp"
#include "tools/petcal/estimate/pairs/known_source.hpp"
#include "tools/petcal/estimate/pairs/own_pairs.hpp"
#include "tools/petcal/estimate/pairs/source_place.hpp"
#include "tools/petcal/estimate/pairs/time_offsets.hpp"

using namespace petacq;

namespace {

/// Time differences of so many annihilations, less what the path difference makes.
std::vector<estimate::TimeDifference> differences(
    const config::Scanner& scanner, test::DrawnPairs& pairs, const test::FastSource& source, int count,
    const std::function<bool(std::uint32_t, std::uint32_t)>& good) {
    const estimate::KnownSource known{{source.x, source.y, source.z - source.length / 2},
                                      {source.x, source.y, source.z + source.length / 2},
                                      source.radius};
    const double ticks_per_mm = 1 / (config::light_mm_per_ps * scanner.tick_ps);
    std::vector<estimate::TimeDifference> out;
    for (int i = 0; i < count; ++i) {
        const auto pair = pairs.next(source);
        if (!pair || !good(pair->a, pair->b)) continue;
        const auto path = path_difference_mm(known, crystal_place(scanner, pair->a).front_centre_mm,
                                             crystal_place(scanner, pair->b).front_centre_mm);
        if (path) out.push_back({pair->a, pair->b, static_cast<float>(pair->ticks - *path * ticks_per_mm)});
    }
    return out;
}

bool all_pairs(std::uint32_t, std::uint32_t) {
    return true;
}

}  // namespace

TEST_CASE("arrangement times: offsets of crystals come out within their errors") {
    const auto* name = GENERATE("phoswich", "two-rings");
    INFO(name);
    const config::Scanner scanner = test::example_of_long_form(name);
    test::DrawnPairs pairs(scanner, 5);
    const auto data = differences(scanner, pairs, {0, 0, 0, 15, 40}, 700'000, all_pairs);
    estimate::TimeOffsetOptions options;
    options.min_pairs = 10;
    options.neighbours = estimate::neighbours_in_units(scanner);
    const auto found = estimate::time_offsets(scanner.geometry.crystal_count(), data, options);
    CHECK(found.groups == 1);
    CHECK(found.undetermined.size() < scanner.geometry.crystal_count() / 10);
    double mean = 0;
    double known = 0;
    for (std::size_t i = 0; i < found.ticks.size(); ++i) {
        if (!std::isfinite(found.error_ticks[i])) continue;
        mean += found.ticks[i] + pairs.offsets()[i];
        known += 1;
    }
    mean /= known;
    double wrong = 0;
    double stated = 0;
    for (std::size_t i = 0; i < found.ticks.size(); ++i) {
        if (!std::isfinite(found.error_ticks[i])) continue;
        wrong += std::pow(found.ticks[i] + pairs.offsets()[i] - mean, 2);
        stated += found.error_ticks[i] * found.error_ticks[i];
    }
    CAPTURE(std::sqrt(wrong / known), std::sqrt(stated / known));
    CHECK(std::sqrt(wrong / known) < 8);  // of 30, with a few dozen pairs of 14 ticks for each crystal
    CHECK(wrong < 2 * stated);
}

TEST_CASE("arrangement times: modules that no pair joins are different groups") {
    const config::Scanner scanner = test::example_of_long_form("box");
    // Opposite panels alone: those at +x and -x, and those at +y and -y.
    const auto is_x = [&](std::uint32_t crystal) {
        return std::abs(crystal_place(scanner, crystal).outward[0]) > 0.5;
    };
    test::DrawnPairs pairs(scanner, 5);
    const auto data = differences(scanner, pairs, {0, 0, 0, 12, 40}, 600'000,
                                  [&](std::uint32_t a, std::uint32_t b) { return is_x(a) == is_x(b); });
    estimate::TimeOffsetOptions options;
    options.min_pairs = 20;
    const auto found = estimate::time_offsets(scanner.geometry.crystal_count(), data, options);
    CHECK(found.groups == 2);
    for (std::uint32_t i = 0; i < found.ticks.size(); ++i) {
        if (!std::isfinite(found.error_ticks[i])) continue;
        REQUIRE((found.group_of[i] == found.group_of[0]) == (is_x(i) == is_x(0)));
    }
}

TEST_CASE("arrangement times: neighbours are in the same layer of the same unit") {
    const config::Scanner scanner = test::example_of_long_form("phoswich");
    const auto all = estimate::neighbours_in_units(scanner);
    std::size_t links = 0;
    for (std::uint32_t c = 0; c < all.size(); ++c) {
        const config::CrystalAddress at = scanner.arrangement->address(c);
        for (const std::uint32_t n : all[c]) {
            const config::CrystalAddress beside = scanner.arrangement->address(n);
            REQUIRE(at.module == beside.module);
            REQUIRE(at.layer == beside.layer);
            REQUIRE(std::abs(int(at.column) - int(beside.column)) + std::abs(int(at.row) - int(beside.row)) ==
                    1);
        }
        links += all[c].size();
    }
    CHECK(links == std::size_t{28} * 2 * (2 * 7 * 6 + 2 * 8 * 7));

    // A module of the box is two units side by side.
    const config::Scanner box = test::example_of_long_form("box");
    const auto in_box = estimate::neighbours_in_units(box);
    const auto crystal = [&](std::uint32_t column) { return box.arrangement->crystal({0, 0, column, 3}); };
    const auto joined = [&](std::uint32_t a, std::uint32_t b) {
        return std::count(in_box[crystal(a)].begin(), in_box[crystal(a)].end(), crystal(b)) == 1;
    };
    CHECK(joined(6, 7));
    CHECK_FALSE(joined(7, 8));
    CHECK(joined(8, 9));
}

TEST_CASE("arrangement times: the place of the source is found") {
    const auto* name = GENERATE("phoswich", "box", "insert", "two-heads");
    INFO(name);
    const config::Scanner scanner = test::example_of_long_form(name);
    test::DrawnPairs pairs(scanner, 8);
    std::vector<estimate::Line> lines;
    for (int i = 0; i < 80'000; ++i)
        if (const auto pair = pairs.next({1.5, -1, 2, 8, 20})) lines.emplace_back(pair->a, pair->b);
    const auto place = estimate::find_source(scanner, lines, {{0, 0, -10}, {0, 0, 10}, 8}, 0);
    CAPTURE(place.lines, place.error_mm);
    CHECK(place.lines > 2000);
    CHECK(place.centre_mm[0] == Approx(1.5).margin(0.25 + 5 * place.error_mm));
    CHECK(place.centre_mm[1] == Approx(-1).margin(0.25 + 5 * place.error_mm));
    CHECK(place.centre_mm[2] == Approx(2).margin(1));
}

TEST_CASE("arrangement times: exchanged BDMs are named") {
    const config::Scanner scanner = test::example_of_long_form("phoswich");
    test::DrawnPairs pairs(scanner, 8);
    const std::uint32_t in_module = scanner.geometry.crystals_per_du();
    const auto moved = [&](std::uint32_t crystal) {
        const std::uint32_t module = crystal / in_module;
        return (module == 3 ? 9 : module == 9 ? 3 : module) * in_module + crystal % in_module;
    };
    std::vector<estimate::Line> lines;
    for (int i = 0; i < 200'000; ++i)
        if (const auto pair = pairs.next({0, 0, 0, 6, 20}))
            lines.emplace_back(moved(pair->a), moved(pair->b));
    const auto found = estimate::exchanged_modules(scanner, lines, {{0, 0, -10}, {0, 0, 10}, 6});
    REQUIRE(found.size() == 1);
    CHECK(std::min(found[0].a, found[0].b) == 3);
    CHECK(std::max(found[0].a, found[0].b) == 9);
}

TEST_CASE("arrangement times: places along the axis without counts are named") {
    const config::Scanner scanner = test::example_of_long_form("two-rings");
    const std::uint32_t crystals = scanner.geometry.crystal_count();
    CHECK(estimate::ring_count(scanner.geometry) > 10);
    std::vector<double> counts(crystals, 100);
    const std::vector<double> expected(crystals, 1);
    CHECK(estimate::rings_without(scanner.geometry, counts, expected).empty());
    for (std::uint32_t i = 0; i < crystals; ++i)
        if (estimate::ring_of(scanner.geometry, i) == 2) counts[i] = 0;
    CHECK(estimate::rings_without(scanner.geometry, counts, expected) == std::vector<std::uint32_t>{2});
}

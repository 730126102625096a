// The place of a source from its lines, exchanged modules and rings without counts.
#include "tools/petcal/estimate/pairs/source_place.hpp"

#include <algorithm>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/tools/petcal/estimate/fast_pairs.hpp"

using namespace petacq;
using namespace petacq::test;
using estimate::exchanged_modules;
using estimate::find_source;
using estimate::Line;
using estimate::rings_without;

namespace {

/// 48 modules of 2 x 6 crystals: a ring that is nearly round.
config::Scanner round_ring() {
    config::Scanner s;
    s.name = "round";
    s.geometry = {48, {1, 1, 1}, {1, 1, 1}, {1, 2, 6}, 48, 1, 64};
    s.tick_ps = 20;
    s.dimensions = {30, 2, 2, 10, 0, 0, 0};
    return s;
}

std::vector<Line> lines_of(const config::Scanner& scanner, const FastSource& source, std::uint64_t seed) {
    FastPairs pairs(scanner, seed);
    std::vector<Line> out;
    while (out.size() < 60'000)
        if (const auto pair = pairs.next(source)) out.emplace_back(pair->a, pair->b);
    return out;
}

estimate::KnownSource cylinder(double radius, double half_length) {
    return {{0, 0, -half_length}, {0, 0, half_length}, radius};
}

void check_place(const estimate::SourcePlace& found, const config::Vector3& truth, double margin) {
    INFO(found.centre_mm[0] << ", " << found.centre_mm[1] << ", " << found.centre_mm[2] << " +- "
                            << found.error_mm);
    for (std::size_t i = 0; i < 3; ++i)
        CHECK(found.centre_mm[i] == Approx(truth[i]).margin(margin));
}

}  // namespace

TEST_CASE("the place of a source follows from its lines", "[place]") {
    const config::Scanner scanner = round_ring();
    SECTION("a cylinder that is longer than the scanner: not where along the axis") {
        const auto found =
            find_source(scanner, lines_of(scanner, {0.4, -0.3, 0, 12, 40}, 41), cylinder(12, 20), 0);
        check_place(found, {0.4, -0.3, 0}, 0.15);
        CHECK(found.error_mm < 0.06);
        CHECK(found.centre_mm[2] == 0);
    }
    SECTION("a cylinder within the scanner: along the axis, too") {
        const auto found = find_source(scanner, lines_of(scanner, {0, 0, 0.8, 8, 6}, 45), cylinder(8, 3), 0);
        CHECK(found.error_along_mm > 0.003);
        CHECK(found.error_along_mm < 0.03);
        check_place(found, {0, 0, 0.8}, 0.4);  // nearer to the middle, which sees more
    }
    SECTION("one of which a part of the scanner does not count") {
        auto lines = lines_of(scanner, {0.4, -0.3, 0, 12, 40}, 42);
        const auto dead = [&](std::uint32_t crystal) { return crystal % 96 >= 10 && crystal % 96 < 16; };
        std::erase_if(lines, [&](const Line& l) { return dead(l.first) || dead(l.second); });
        check_place(find_source(scanner, lines, cylinder(12, 20), 0), {0.4, -0.3, 0}, 0.15);
    }
    SECTION("a point that is far from where it was said to be") {
        const auto lines = lines_of(scanner, {9, 5, -2, 0.1, 0.1}, 43);
        check_place(find_source(scanner, lines, {{}, {}, 2}, 0), {9, 5, -2}, 0.3);
    }
}

TEST_CASE("exchanged modules are told from a source that lies elsewhere", "[place]") {
    const config::Scanner scanner = round_ring();
    const auto right = lines_of(scanner, {0, 0, 0, 8, 40}, 44);
    const auto known = cylinder(8, 20);
    CHECK(exchanged_modules(scanner, right, known).empty());
    CHECK(exchanged_modules(scanner, right, {{6, 0, -20}, {6, 0, 20}, 8}).empty());
    const auto moved = [&](std::uint32_t crystal) -> std::uint32_t {
        const std::uint32_t module = crystal % 96 / 2;
        const std::uint32_t other = module == 5    ? 30
                                    : module == 30 ? 5
                                    : module == 9  ? 17
                                    : module == 17 ? 9
                                                   : module;
        return crystal + 2 * other - 2 * module;
    };
    std::vector<Line> wrong;
    for (const auto& [a, b] : right)
        wrong.emplace_back(moved(a), moved(b));
    const auto found = exchanged_modules(scanner, wrong, known);
    REQUIRE(found.size() == 2);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> modules;
    for (const auto& e : found) {
        modules.emplace_back(e.a, e.b);
        CHECK(e.missed > 0.5);
        CHECK(e.missed_after < 0.2);
    }
    std::sort(modules.begin(), modules.end());
    CHECK(modules == std::vector<std::pair<std::uint32_t, std::uint32_t>>{{5, 30}, {9, 17}});
}

TEST_CASE("rings without counts are told", "[place]") {
    const config::Geometry g = round_ring().geometry;
    std::vector<double> counts(g.crystal_count(), 50);
    std::vector<double> expected(g.crystal_count(), 1);
    CHECK(rings_without(g, counts, expected).empty());
    std::fill(counts.begin() + 96 * 4, counts.end(), 3);
    std::fill(expected.begin(), expected.begin() + 96, 0);
    CHECK(rings_without(g, counts, expected) == std::vector<std::uint32_t>{0, 4, 5});
}

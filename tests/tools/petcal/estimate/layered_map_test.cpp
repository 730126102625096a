// Crystal maps of detector units of the long form.
#include "tools/petcal/estimate/layered_map.hpp"

#include <cmath>
#include <random>

#include "config/flood_layout.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;

namespace {

struct DrawnHit {
    std::size_t position;
    std::uint32_t local;
};

/// Spots of a fifth of a pitch where the layout has the crystals, drawn together towards the corners.
std::vector<DrawnHit> drawn_hits(const config::Scanner& scanner, std::uint32_t unit, int per_crystal,
                                 std::uint32_t without = UINT32_MAX) {
    const config::FloodLayout layout(scanner, unit);
    const double size = scanner.geometry.position_size;
    std::mt19937 random(unit + 1);
    std::normal_distribution<double> spread(0, 0.2);
    std::vector<DrawnHit> hits;
    for (std::uint32_t local = 0; local < scanner.geometry.crystals_of_unit(unit); ++local) {
        if (local == without) continue;
        for (int i = 0; i < per_crystal; ++i) {
            const auto [u, v] = layout.point(local, spread(random), spread(random));
            const double less = 0.92 * (1 - 0.05 * (u * u + v * v));
            const double x = (u * less + 1) / 2 * size + 0.4;
            const double y = (v * less + 1) / 2 * size - 0.3;
            if (x < 0 || y < 0 || x >= size || y >= size) continue;
            hits.push_back(
                {static_cast<std::size_t>(x) + static_cast<std::size_t>(y) * scanner.geometry.position_size,
                 local});
        }
    }
    return hits;
}

std::vector<std::uint32_t> flood_of_hits(const config::Scanner& scanner, const std::vector<DrawnHit>& hits) {
    const std::size_t size = scanner.geometry.position_size;
    std::vector<std::uint32_t> flood(size * size);
    for (const DrawnHit& hit : hits)
        ++flood[hit.position];
    return flood;
}

config::Scanner long_form(const std::string& name) {
    return config::load_scanner(test::example("scanners/" + name + ".scanner.json"));
}

}  // namespace

TEST_CASE("layered map: positions belong to the crystals that fill them") {
    const auto* name = GENERATE("phoswich", "box", "unequal-blocks", "two-rings", "insert");
    INFO(name);
    const config::Scanner scanner = long_form(name);
    for (const std::uint32_t unit : {0U, 1U, 2U, scanner.geometry.unit_count() - 1}) {
        CAPTURE(unit, scanner.geometry.crystals_of_unit(unit));
        if (scanner.geometry.crystals_of_unit(unit) == 0) continue;
        const auto hits = drawn_hits(scanner, unit, 600);
        const auto map = petcal::derive_map(scanner, unit, flood_of_hits(scanner, hits));
        REQUIRE(map.refused == "");
        CHECK(map.quality.peaks == scanner.geometry.crystals_of_unit(unit));
        double right = 0;
        for (const DrawnHit& hit : hits)
            right += map.table[hit.position] == hit.local ? 1 : 0;
        CHECK(right / static_cast<double>(hits.size()) > 0.95);
    }
}

TEST_CASE("layered map: a layer without counts is named") {
    const config::Scanner scanner = long_form("phoswich");
    auto hits = drawn_hits(scanner, 0, 600);
    std::erase_if(hits, [](const DrawnHit& hit) { return hit.local >= 49; });
    const auto map = petcal::derive_map(scanner, 0, flood_of_hits(scanner, hits));
    CHECK_THAT(map.refused, test::contains("layer 1: expected at least 200 counts per crystal"));
}

TEST_CASE("layered map: a dead crystal has the place that the others predict") {
    const config::Scanner scanner = long_form("phoswich");
    const std::uint32_t dead = 49 + 3 * 8 + 4;
    const auto map =
        petcal::derive_map(scanner, 0, flood_of_hits(scanner, drawn_hits(scanner, 0, 600, dead)));
    REQUIRE(map.refused == "");
    CHECK(map.quality.peaks == 49 + 64 - 1);
    CHECK(map.found[dead] == 0);
    const double between = (map.spots[dead - 1].x + map.spots[dead + 1].x) / 2;
    CHECK(map.spots[dead].x == Approx(between).margin(0.5));
}

TEST_CASE("layered map: a place that a person gave is kept") {
    const config::Scanner scanner = long_form("phoswich");
    const std::vector<petcal::KnownSpot> known{{49 + 10, {40.5, 50.25}}};
    const auto map =
        petcal::derive_map(scanner, 0, flood_of_hits(scanner, drawn_hits(scanner, 0, 600)), known);
    CHECK(map.spots[49 + 10].x == Approx(40.5));
    CHECK(map.spots[49 + 10].y == Approx(50.25));
}

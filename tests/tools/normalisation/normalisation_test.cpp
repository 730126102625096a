#include "tools/normalisation/normalisation.hpp"

#include <cmath>
#include <limits>
#include <random>

#include "config/base/error.hpp"
#include "config/scanner/scanner.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/petsim/common.hpp"

namespace petacq {
namespace {

using normalisation::Normalisation;

/// Factors between 0.5 and 1.5.
Normalisation uneven(const config::Geometry& g) {
    Normalisation n = Normalisation::even(g);
    std::mt19937 random(3);
    std::uniform_real_distribution<float> factor(0.5F, 1.5F);
    for (float& value : n.efficiency)
        value = factor(random);
    for (float& value : n.transaxial)
        value = factor(random);
    for (std::uint32_t a = 0; a < g.rings(); ++a) {
        for (std::uint32_t b = 0; b <= a; ++b)
            n.axial[a * g.rings() + b] = n.axial[b * g.rings() + a] = factor(random);
    }
    n.efficiency[1] = 0;
    return n;
}

}  // namespace

TEST_CASE("normalisation: a file gives back what was saved", "[normalisation]") {
    const config::Geometry g = test::small_scanner().geometry;
    const test::TemporaryDirectory dir;
    const auto file = dir.path() / "n.h5";
    Normalisation n = uneven(g);
    n.origin["made_by"] = "a test";
    const bool calibrated = GENERATE(false, true);
    if (calibrated) n.activity_factor = 1.25;
    save(file, g, n);
    const Normalisation found = normalisation::load(file, g);
    CHECK(found.efficiency == n.efficiency);
    CHECK(found.transaxial == n.transaxial);
    CHECK(found.axial == n.axial);
    CHECK(found.activity_factor == n.activity_factor);
    CHECK(found.origin == n.origin);
    CHECK(found.sha256.size() == 64);
}

TEST_CASE("normalisation: the factor of a pair does not depend on the order of its crystals",
          "[normalisation]") {
    const config::Geometry g = test::small_scanner().geometry;
    const Normalisation n = uneven(g);
    std::mt19937 random(4);
    std::uniform_int_distribution<std::uint32_t> crystal(0, g.crystal_count() - 1);
    for (int i = 0; i < 2000; ++i) {
        const std::uint32_t a = crystal(random);
        const std::uint32_t b = crystal(random);
        REQUIRE(factor_of(g, n, a, b) == factor_of(g, n, b, a));
    }
}

TEST_CASE("normalisation: pairs that a turn of the ring makes equal share a class", "[normalisation]") {
    const config::Geometry g = test::small_scanner().geometry;
    const std::uint32_t columns = g.crystals_per_module_y();
    const std::uint32_t in_ring = g.crystals_in_ring();
    for (std::uint32_t a = 0; a < in_ring; ++a) {
        for (std::uint32_t b = 0; b < in_ring; ++b) {
            const auto up = (b / columns + g.modules_in_ring() - a / columns) % g.modules_in_ring();
            if (up == 0 || 2 * up == g.modules_in_ring()) continue;
            REQUIRE(normalisation::transaxial_class(g, a, b) ==
                    normalisation::transaxial_class(g, (a + columns) % in_ring, (b + columns) % in_ring));
        }
    }
}

TEST_CASE("normalisation: a file that makes no sense is refused", "[normalisation]") {
    const config::Geometry g = test::small_scanner().geometry;
    const test::TemporaryDirectory dir;
    const auto file = dir.path() / "n.h5";
    const auto refused = [&](const auto& change, const char* with) {
        Normalisation n = Normalisation::even(g);
        change(n);
        try {
            save(file, g, n);
            FAIL("saved");
        } catch (const config::Error& error) {
            CHECK_THAT(error.what(), test::contains(with));
        }
        CHECK_FALSE(exists(file));
    };
    refused([](auto& n) { n.efficiency[0] = std::numeric_limits<float>::quiet_NaN(); }, "efficiency");
    refused([](auto& n) { n.transaxial[0] = -1; }, "transaxial");
    refused([](auto& n) { n.axial.pop_back(); }, "axial");
    refused([](auto& n) { n.axial[1] = 2; }, "either order");
    refused([](auto& n) { n.efficiency.assign(n.efficiency.size(), 0); }, "some above 0");
    refused([](auto& n) { n.activity_factor = 0; }, "activity_factor");

    save(file, g, Normalisation::even(g));
    config::Geometry other = g;
    other.crystals.z += 1;
    CHECK_THROWS_AS(normalisation::load(file, other), config::Error);
}

}  // namespace petacq

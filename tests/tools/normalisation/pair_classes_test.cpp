// Symmetries of scanners, and the pairs of crystals that they make alike.
#include "tools/normalisation/pair_classes.hpp"

#include <cmath>
#include <map>
#include <random>

#include "config/base/error.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/normalisation/normalisation.hpp"
#include "tools/normalisation/symmetry.hpp"

namespace petacq {
namespace {

using normalisation::Normalisation;
using normalisation::PairClasses;

config::Scanner example_scanner(const std::string& name) {
    return config::load_scanner(test::example("scanners/" + name + ".scanner.json"));
}

/// What two crystals look like from each other, in micrometres: the same for pairs that a rotation or
/// reflection maps on each other.
std::array<long, 5> relation(const config::Arrangement& arrangement, std::uint32_t a, std::uint32_t b) {
    const config::CrystalPlace p = arrangement.place(a);
    const config::CrystalPlace q = arrangement.place(b);
    double square = 0;
    double along_a = 0;
    double along_b = 0;
    double cosine = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const double way = q.front_centre_mm[axis] - p.front_centre_mm[axis];
        square += way * way;
        along_a += way * p.outward[axis];
        along_b -= way * q.outward[axis];
        cosine += p.outward[axis] * q.outward[axis];
    }
    const auto um = [](double mm) { return std::lround(100 * mm); };
    if (um(along_a) > um(along_b)) std::swap(along_a, along_b);
    const double z = std::abs(p.front_centre_mm[2] - q.front_centre_mm[2]);
    return {um(std::sqrt(square)), um(along_a), um(along_b), um(10 * cosine), um(z)};
}

Normalisation uneven(const config::Scanner& scanner) {
    auto found = normalisation::classes_of(*scanner.arrangement);
    Normalisation n = Normalisation::even(scanner.geometry);
    std::mt19937 random(3);
    std::uniform_real_distribution<float> factor(0.5F, 1.5F);
    for (float& value : n.efficiency)
        value = factor(random);
    for (const std::uint32_t first : found->same_transaxial) {
        if (first == n.transaxial.size()) {
            n.transaxial.push_back(factor(random));
        } else {
            n.transaxial.push_back(n.transaxial[first]);
        }
    }
    for (const std::uint32_t first : found->same_axial) {
        if (first == n.axial.size()) {
            n.axial.push_back(factor(random));
        } else {
            n.axial.push_back(n.axial[first]);
        }
    }
    n.classes = std::make_shared<const PairClasses>(std::move(found->classes));
    return n;
}

}  // namespace

TEST_CASE("pair classes: the symmetries of the examples", "[normalisation]") {
    const auto count = [](const char* name) {
        return normalisation::symmetries_of(*example_scanner(name).arrangement).size();
    };
    CHECK(count("phoswich") == 14 * 2 * 2);
    CHECK(count("box") == 2 * 2 * 2);      // 60 mm by 56 mm
    CHECK(count("unequal-blocks") == 12);  // 7 + 8 crystals are not the same from the other side
    CHECK(count("two-rings") == 2 * 2);    // 16 and 14 modules, one ring at each end
    CHECK(count("insert") == 4 * 2 * 2);   // 20 and 16 modules
    CHECK(count("partial-ring") == 1 * 2 * 2);
    CHECK(count("hexagon") == 6 * 2 * 2);
}

TEST_CASE("pair classes: there are none for very many modules", "[normalisation]") {
    const auto absent = [](std::size_t count) {
        nlohmann::json scanner = nlohmann::json::parse(R"({
            "name": "long", "tick_ps": 10, "position_size": 8,
            "module_types": [{"name": "block", "layers": [
                {"y": {"count": 1, "pitch_mm": 4}, "z": {"count": 1, "pitch_mm": 4}, "length_mm": 5}]}],
            "modules": [{"type": "block", "ring": {"count": 3, "radius_mm": 10}, "along_z": {"pitch_mm": 5}}],
            "frame_version": 2})");
        scanner["modules"][0]["along_z"]["count"] = count;
        return !normalisation::classes_of(*config::scanner_from_json(scanner).arrangement);
    };
    CHECK_FALSE(absent(2));
    CHECK(absent(700));
}

TEST_CASE("pair classes: pairs of one class look the same", "[normalisation]") {
    for (const char* name : {"phoswich", "box", "unequal-blocks", "two-rings", "insert", "two-heads"}) {
        INFO(name);
        const config::Scanner scanner = example_scanner(name);
        const config::Arrangement& arrangement = *scanner.arrangement;
        const auto found = normalisation::classes_of(arrangement);
        REQUIRE(found);
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::array<long, 5>> seen;
        std::mt19937 random(4);
        std::uniform_int_distribution<std::uint32_t> crystal(0, arrangement.crystal_count() - 1);
        std::size_t again = 0;
        const auto check = [&](std::uint32_t a, std::uint32_t b) {
            const auto at = found->classes.entries(a, b);
            REQUIRE(at.transaxial < found->classes.transaxial_count());
            REQUIRE(at.axial < found->classes.axial_count());
            const auto [same, fresh] =
                seen.try_emplace({found->same_transaxial[at.transaxial], found->same_axial[at.axial]},
                                 relation(arrangement, a, b));
            again += fresh ? 0 : 1;
            const auto here = relation(arrangement, a, b);
            for (std::size_t i = 0; i < here.size(); ++i)
                if (std::abs(here[i] - same->second[i]) > 1) FAIL("crystals " << a << " and " << b);
        };
        for (int i = 0; i < 100'000; ++i) {
            const std::uint32_t a = crystal(random);
            const std::uint32_t b = crystal(random);
            if (found->classes.module[a] == found->classes.module[b]) continue;
            check(a, b);
            check(b, a);
        }
        CHECK(again > 90'000);
    }
}

TEST_CASE("pair classes: a symmetry does not change the factor of a pair", "[normalisation]") {
    for (const char* name : {"phoswich", "box", "insert"}) {
        const config::Scanner scanner = example_scanner(name);
        const config::Arrangement& arrangement = *scanner.arrangement;
        Normalisation n = uneven(scanner);
        std::fill(n.efficiency.begin(), n.efficiency.end(), 1.0F);
        const auto image = [&](const normalisation::Symmetry& s, std::uint32_t crystal) {
            config::CrystalAddress at = arrangement.address(crystal);
            const config::CrystalLayer& layer = arrangement.layer_of(crystal);
            const normalisation::ModuleImage& to = s[at.module];
            at.module = to.module;
            if (to.reversed_y) at.column = layer.y.count() - 1 - at.column;
            if (to.reversed_z) at.row = layer.z.count() - 1 - at.row;
            return arrangement.crystal(at);
        };
        std::mt19937 random(4);
        std::uniform_int_distribution<std::uint32_t> crystal(0, arrangement.crystal_count() - 1);
        const auto symmetries = normalisation::symmetries_of(arrangement);
        for (int i = 0; i < 200; ++i) {
            const std::uint32_t a = crystal(random);
            const std::uint32_t b = crystal(random);
            const double expected = factor_of(scanner.geometry, n, a, b);
            REQUIRE(factor_of(scanner.geometry, n, b, a) == expected);
            for (const auto& s : symmetries)
                REQUIRE(factor_of(scanner.geometry, n, image(s, a), image(s, b)) == expected);
        }
    }
}

TEST_CASE("pair classes: a file of the long form gives back what was saved", "[normalisation]") {
    const test::TemporaryDirectory dir;
    for (const char* name : {"phoswich", "insert"}) {
        const config::Scanner scanner = example_scanner(name);
        const Normalisation n = uneven(scanner);
        save(dir / "n.h5", scanner.geometry, n);
        const Normalisation found = normalisation::load(dir / "n.h5", scanner.geometry);
        CHECK(found.efficiency == n.efficiency);
        CHECK(found.transaxial == n.transaxial);
        CHECK(found.axial == n.axial);
        REQUIRE(found.classes);
        CHECK(*found.classes == *n.classes);
    }
    const config::Scanner scanner = example_scanner("phoswich");
    CHECK_THROWS_AS(normalisation::load(dir / "n.h5", scanner.geometry), config::Error);

    // Without geometric factors.
    save(dir / "even.h5", scanner.geometry, Normalisation::even(scanner.geometry));
    const Normalisation even = normalisation::load(dir / "even.h5", scanner.geometry);
    CHECK_FALSE(even.classes);
    CHECK(factor_of(scanner.geometry, even, 0, 2000) == 1);
}

TEST_CASE("pair classes: tables that do not belong together are refused", "[normalisation]") {
    const auto found = normalisation::classes_of(*example_scanner("insert").arrangement);
    const auto complaint_of = [&](const auto& change) {
        PairClasses c = found->classes;
        change(c);
        return test::complaint([&] { c.index(); });
    };
    CHECK(complaint_of([](PairClasses&) {}).empty());
    CHECK_THAT(complaint_of([](PairClasses& c) { c.module[3] = 5000; }), test::contains("module: expected"));
    CHECK_THAT(complaint_of([](PairClasses& c) { c.pair_class[1] = 1'000'000; }),
               test::contains("pair_class: expected"));
    CHECK_THAT(complaint_of([](PairClasses& c) { c.pair_class[1] += 1; }),
               test::contains("pair_class: expected"));
    CHECK_THAT(complaint_of([](PairClasses& c) { c.pair_turn[1] = 200; }),
               test::contains("pair_turn: expected"));
    CHECK_THAT(complaint_of([](PairClasses& c) { c.mirrored_row[1] = 12; }), test::contains("row: expected"));
    CHECK_THAT(complaint_of([](PairClasses& c) { c.class_b.pop_back(); }),
               test::contains("class_b: expected"));
    CHECK_THAT(complaint_of([](PairClasses& c) { c.rows.pop_back(); }), test::contains("rows: expected"));
}

}  // namespace petacq

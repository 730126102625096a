#include "config/scanner/depth_of_interaction.hpp"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "config/base/error.hpp"
#include "config/scanner/crystal_material.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using config::DepthOfInteraction;

namespace {

config::Dimensions crystals_of(double radius, double length, const char* material) {
    config::Dimensions d;
    d.ring_radius_mm = radius;
    d.crystal_length_mm = length;
    d.crystal_material = material;
    return d;
}

config::Scanner small() {
    return config::load_scanner(test::example("small.scanner.json"));
}

/// By the sum over thin slices of a crystal, photons coming from half way between both ends.
double mean_by_slices(double per_mm, double length, double cosine, double apart) {
    constexpr int slices = 100'000;
    double sum = 0;
    double weights = 0;
    for (int i = 0; i < slices; ++i) {
        const double depth = (i + 0.5) * length / slices;
        const double weight = std::exp(-depth * (per_mm + 4 / (apart + length)) / cosine);
        sum += weight * depth;
        weights += weight;
    }
    return sum / weights;
}

}  // namespace

TEST_CASE("the depth of interaction is the mean of where a crystal absorbs the photons of a line",
          "[config][depth]") {
    for (const auto& [radius, length, material, per_mm] :
         {std::tuple(38.0, 13.0, "LYSO", 0.083), std::tuple(400.0, 30.0, "BGO", 0.095),
          std::tuple(50.0, 0.5, "NaI", 0.034), std::tuple(60.0, 300.0, "LSO", 0.087)}) {
        const DepthOfInteraction depth(crystals_of(radius, length, material));
        CHECK_FALSE(depth.is_fixed());
        for (const double cosine : {1.0, 0.9, 0.5, 0.2}) {
            const double apart = 2 * radius * cosine;
            CAPTURE(radius, length, material, cosine);
            CHECK(depth.mm(cosine, apart) ==
                  Approx(mean_by_slices(per_mm, length, cosine, apart)).margin(1e-4 * length));
        }
        CHECK(depth.typical_mm() == depth.mm(1, 2 * radius));
        // Lines along the panel are of no use, but have an end inside the crystal.
        CHECK(depth.mm(0, radius) >= 0);
        CHECK(depth.mm(-0.5, radius) < length / 2);
    }
    CHECK(DepthOfInteraction(crystals_of(38, 13, "LYSO")).typical_mm() == Approx(4.8).margin(0.05));
}

TEST_CASE("a depth of interaction that is asked for holds for all lines", "[config][depth]") {
    const config::Dimensions dimensions = crystals_of(38, 13, "LYSO");
    const auto asked = DepthOfInteraction::of(dimensions, 2.5);
    CHECK(asked.is_fixed());
    CHECK(asked.mm(0.3, 20) == 2.5);
    CHECK(asked.typical_mm() == 2.5);
    CHECK(asked.name() == "2.5");
    CHECK(DepthOfInteraction::of(dimensions, std::nullopt).name() == "absorption at 0.83 per cm");
    for (const double wrong : {-0.1, 13.1, std::nan("")}) {
        CHECK_THROWS_WITH(DepthOfInteraction::of(dimensions, wrong),
                          test::contains("--depth-mm: expected 0 to 13 (the length of a crystal), found"));
    }
}

TEST_CASE("lines end at the depth of interaction along their crystals", "[config][depth]") {
    const config::Scanner scanner = small();
    const DepthOfInteraction depth(scanner.dimensions);
    const config::LineGeometry lines(scanner, depth);
    const std::uint32_t across = scanner.geometry.crystals_in_ring() / 2 + 3;
    const auto [from, to] = lines.ends(0, across);
    for (const auto& [end, place, other] : {std::tuple(from, lines.places[0], lines.places[across]),
                                            std::tuple(to, lines.places[across], lines.places[0])}) {
        config::Vector3 along{};
        for (std::size_t i = 0; i < 3; ++i)
            along[i] = place.front_centre_mm[i] - other.front_centre_mm[i];
        const double apart = std::hypot(along[0], along[1], along[2]);
        const double cosine = (along[0] * place.outward[0] + along[1] * place.outward[1]) / apart;
        const auto expected = config::point_at_depth(place, depth.mm(cosine, apart));
        for (std::size_t i = 0; i < 3; ++i)
            CHECK(end[i] == Approx(expected[i]).margin(1e-9));
    }
}

TEST_CASE("a scanner is of LYSO unless its description names another material or an attenuation",
          "[config][scanner][depth]") {
    const nlohmann::json usual = to_json(small());
    CHECK(config::crystal_material(config::scanner_from_json(usual).dimensions).attenuation_per_cm == 0.83);
    nlohmann::json stated = usual;
    stated["dimensions"]["crystal_material"] = "LYSO";
    CHECK(to_json(config::scanner_from_json(stated)) == usual);

    for (const config::CrystalMaterial& material : config::crystal_materials()) {
        stated["dimensions"]["crystal_material"] = material.name;
        const config::Scanner scanner = config::scanner_from_json(stated);
        CHECK(config::crystal_material(scanner.dimensions).attenuation_per_cm == material.attenuation_per_cm);
        CHECK(config::scanner_from_json(to_json(scanner)).dimensions.crystal_material == material.name);
    }
    stated["dimensions"]["crystal_attenuation_per_cm"] = 0.5;
    const config::Scanner scanner = config::scanner_from_json(stated);
    CHECK(config::crystal_material(scanner.dimensions).attenuation_per_cm == 0.5);
    CHECK(to_json(scanner)["dimensions"]["crystal_attenuation_per_cm"] == 0.5);

    stated["dimensions"]["crystal_attenuation_per_cm"] = 0;
    CHECK_THROWS_WITH(config::scanner_from_json(stated),
                      test::contains("/dimensions/crystal_attenuation_per_cm: expected a number from 0.001"));
    stated = usual;
    stated["dimensions"]["crystal_material"] = "lyso";
    CHECK_THROWS_WITH(
        config::scanner_from_json(stated),
        test::contains("/dimensions/crystal_material: expected \"BGO\"") && test::contains("\"LYSO\""));
}

TEST_CASE("the documentation has the table of materials", "[config][depth]") {
    std::ifstream in(PETACQ_SOURCE_DIR "/docs/reference/geometry.md");
    std::ostringstream text;
    text << in.rdbuf();
    for (const config::CrystalMaterial& m : config::crystal_materials()) {
        std::ostringstream row;
        row << std::fixed;
        row.precision(2);
        row << "| `" << m.name << "` | " << m.attenuation_per_cm << " | " << m.photo_share << " |";
        CHECK_THAT(text.str(), test::contains(row.str()));
    }
}

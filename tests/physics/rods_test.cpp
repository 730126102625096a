// Rods of four times, once and none of the concentration around them, with all corrections: the
// concentrations are those of the truth at the start of a run in which a short-lived tracer decays.
#include <algorithm>
#include <string>
#include <vector>

#include "config/nuclides/nuclides.hpp"
#include "tests/physics/laboratory.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("rods: hot and cold in a warm cylinder of Rb-82", "[.long]") {
    // In longer crystals the depth of interaction, which no board measures, would blur the rods.
    Equipment equipment = Equipment::ten_modules("depth");
    equipment.scanner["dimensions"]["crystal_length_mm"] = 10;
    Laboratory laboratory(equipment);
    const auto options = [&](const std::string& name) {
        const config::Nuclide& nuclide = *config::find_nuclide(name);
        return std::vector<std::string>{"--half-life-s", std::to_string(nuclide.half_life_s)};
    };
    const Cylinder flood{0, 0, 24, 64};
    auto phantom =
        std::vector<std::string>{"--seed", "103", "--scatter", "0", "--cylinder", flood.text() + ",6"};
    laboratory.acquire("flood", 8, phantom);
    laboratory.derive_normalisation("flood", flood, "normalisation.h5");
    const auto image = [&](const std::string& run, const Cylinder& water, const std::string& nuclide,
                           const std::string& normalisation, const std::string& iterations) {
        return laboratory.image(run, {"--normalisation", laboratory.path(normalisation), "--attenuation",
                                      water.text(), "--nuclide", nuclide, "--voxel-mm", "2", "--fov-mm", "45",
                                      "--iterations", iterations, "--subsets", "6", "--psf-mm", "2.4"});
    };
    // Decays in the image, positrons in the simulation.
    const auto kbq_per_ml = [](double mbq, double ml, const std::string& nuclide) {
        return 1000 * mbq / ml / config::find_nuclide(nuclide)->branching_ratio;
    };

    const Cylinder known{0, 0, 12, 60};
    phantom = options("F-18");
    phantom.insert(phantom.end(),
                   {"--seed", "105", "--object", known.text(), "--cylinder", known.text() + ",3"});
    laboratory.acquire("known", 5, phantom);
    image("known", known, "F-18", "normalisation.h5", "8");
    laboratory.derive_activity(known, kbq_per_ml(3, known.ml(), "F-18"), "normalisation.h5",
                               "quantitative.h5");

    // 60 s: four tenths of the tracer decay.
    const Cylinder body{-2, 3, 18, 56};
    const Cylinder water{-2, 3, 18, 60};
    const Cylinder hot{6.5, 3, 7, 56};
    const Cylinder cold{-10.5, 3, 7, 56};
    constexpr double body_mbq = 0.8;
    const double warm_ml = body.ml() - cold.ml();
    const double hot_mbq = 3 * body_mbq * hot.ml() / warm_ml;
    phantom = options("Rb-82");
    phantom.insert(phantom.end(), {"--seed", "106", "--object", water.text(), "--cold", cold.text(),
                                   "--cylinder", body.text() + "," + std::to_string(body_mbq), "--cylinder",
                                   hot.text() + "," + std::to_string(hot_mbq)});
    laboratory.acquire("rods", 60, phantom);
    const auto found = image("rods", water, "Rb-82", "quantitative.h5", "20");
    INFO(found.output);
    CHECK(found.statement.at("unit") == "kBq/ml");
    const double truth = kbq_per_ml(body_mbq, warm_ml, "Rb-82");
    const double warm_of_truth = found.values.mean([&](double x, double y, double z) {
        return body.contains(x, y, z, 3) && !hot.contains(x, y, z, -3) && !cold.contains(x, y, z, -3);
    }) / truth;
    const double hot_of_truth = found.mean(hot, 4) / (4 * truth);
    const double cold_of_warm = found.mean(cold, 4) / (warm_of_truth * truth);
    CHECK(warm_of_truth == Approx(1).margin(0.03));
    CHECK(hot_of_truth == Approx(1).margin(0.03));
    CHECK(cold_of_warm < 0.05);
}

// Activity concentrations in images: a scanner with uneven and dead crystals and dead time, and phantoms that
// attenuate and scatter.
#include <algorithm>

#include "tests/physics/laboratory.hpp"
#include "tests/support/catch.hpp"
#include "tools/normalisation/normalisation.hpp"
#include "tools/petsim/detector/detector.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

constexpr const char* factors = "normalisation.h5";

/// A laboratory whose photons interact at the front faces, and the normalisation that is true for it.
class EvenLaboratory : public Laboratory {
  public:
    explicit EvenLaboratory(const Equipment& equipment)
        : Laboratory(equipment),
          geometry_(config::load_scanner(scanner_file()).geometry),
          normalisation_(normalisation::Normalisation::even(geometry_)) {
        const auto detector = sim::load_detector(path("detector.h5"), geometry_);
        double sum = 0;
        for (std::uint32_t i = 0; i < geometry_.crystal_count(); ++i) {
            const auto& crystal = detector.crystals[i];
            normalisation_.efficiency[i] = crystal.state == sim::CrystalState::dead ? 0 : crystal.efficiency;
        }
        for (std::uint32_t local = 0; local < geometry_.crystals_per_du(); ++local)
            normalisation_.efficiency[geometry_.crystal(5, 1, local)] = 0;  // --silent-unit 5.1
        for (const float efficiency : normalisation_.efficiency)
            sum += efficiency;
        for (float& efficiency : normalisation_.efficiency)
            efficiency *= static_cast<float>(geometry_.crystal_count() / sum);
        save(path(factors), geometry_, normalisation_);
    }
    /// Writes the factor that makes `found` the true concentration into the normalisation.
    void calibrate(double found, double truth) {
        normalisation_.activity_factor = truth / found;
        save(path(factors), geometry_, normalisation_);
    }

  private:
    config::Geometry geometry_;
    normalisation::Normalisation normalisation_;
};

bool in_any(const std::vector<Cylinder>& rods, double x, double y, double z, double margin) {
    return std::any_of(rods.begin(), rods.end(),
                       [&](const Cylinder& r) { return r.contains(x, y, z, margin); });
}

}  // namespace

TEST_CASE("image: activity in kBq/ml after calibration by another cylinder", "[.long]") {
    EvenLaboratory laboratory(Equipment::example("mouse", "surface", 200'000));
    const Cylinder known{0, 0, 12, 60};
    constexpr double known_mbq = 5;
    laboratory.acquire("known", 1,
                       {"--seed", "5", "--cylinder", known.text() + ",5", "--object", known.text()});
    const std::vector<std::string> how = {
        "--normalisation", laboratory.path(factors), "--fov-mm", "36", "--iterations", "16"};
    const auto with = [&](const std::string& object) {
        auto options = how;
        options.insert(options.end(), {"--attenuation", object});
        return options;
    };
    const auto first = laboratory.image("known", with(known.text()));
    CHECK(first.statement.at("unit") == "kBq/ml, uncalibrated");
    laboratory.calibrate(first.mean(known, 3), 1000 * known_mbq / known.ml());

    // Rods of about four times the concentration, and one without activity, in a wider cylinder of water.
    const Cylinder body{0, 0, 15, 40};
    const Cylinder water{0, 0, 15, 50};
    const Cylinder cold{-4, -7, 3, 40};
    const std::vector<Cylinder> rods = {{8, 0, 3, 40}, {-4, 7, 3, 40}};
    constexpr double body_mbq = 7.5;
    constexpr double rod_mbq = 0.9;
    std::vector<std::string> phantom = {"--seed", "6",         "--object",   water.text(),
                                        "--cold", cold.text(), "--cylinder", body.text() + ",7.5"};
    for (const Cylinder& rod : rods)
        phantom.insert(phantom.end(), {"--cylinder", rod.text() + ",0.9"});
    laboratory.acquire("rods", 0.5, phantom);
    const auto image = laboratory.image("rods", with(water.text()));
    INFO(image.output);
    CHECK(image.statement.at("unit") == "kBq/ml");
    for (const char* name :
         {"normalisation", "attenuation", "scatter", "randoms", "pile-up", "dead time", "calibration"})
        CHECK(image.statement.at("corrections").at(name).at("made") == true);

    const double background = 1000 * body_mbq / (body.ml() - cold.ml());
    const double rod = background + 1000 * rod_mbq / rods[0].ml();
    const double found_background = image.values.mean([&](double x, double y, double z) {
        return body.contains(x, y, z, 2) && !in_any(rods, x, y, z, -2) && !cold.contains(x, y, z, -2);
    });
    const double found_rods =
        image.values.mean([&](double x, double y, double z) { return in_any(rods, x, y, z, 1.5); });
    const double found_cold = image.mean(cold, 1.5);
    CAPTURE(background, rod, found_background, found_rods, found_cold);
    CHECK(found_background == Approx(background).epsilon(0.03));
    CHECK(found_rods == Approx(rod).epsilon(0.05));
    CHECK(found_cold < 0.3 * background);
}

TEST_CASE("image: a small scanner states the activity of a cylinder", "[.long]") {
    Equipment equipment = Equipment::example("small", "surface", 50'000);
    equipment.daemon["coincidence"]["max_ring_difference"] = 6;  // of 24 rings: fewer lines, a faster image
    EvenLaboratory laboratory(equipment);
    const Cylinder known{0, 0, 6, 30};
    laboratory.acquire("known", 0.5,
                       {"--seed", "7", "--cylinder", known.text() + ",2", "--object", known.text()});
    const Cylinder other{5, -3, 8, 24};
    laboratory.acquire("other", 0.5,
                       {"--seed", "8", "--cylinder", other.text() + ",2", "--object", other.text()});
    const auto image = [&](const std::string& name, const Cylinder& object) {
        return laboratory.image(
            name, {"--normalisation", laboratory.path(factors), "--attenuation", object.text(), "--voxel-mm",
                   "3", "--fov-mm", "33", "--iterations", "6"});
    };
    laboratory.calibrate(image("known", known).mean(known, 2.5), 2000 / known.ml());
    const auto found = image("other", other);
    INFO(found.output);
    CHECK(found.statement.at("unit") == "kBq/ml");
    CHECK(found.mean(other, 2.5) == Approx(2000 / other.ml()).epsilon(0.06));
}

TEST_CASE("image: rods off the axis, with depth of interaction, scatter and a derived normalisation",
          "[.long]") {
    Laboratory laboratory(Equipment::example("small", "depth", 50'000));
    const Cylinder flood{0, 0, 20, 60};
    laboratory.acquire("flood", 10, {"--seed", "3", "--scatter", "0", "--cylinder", flood.text() + ",5"});
    laboratory.derive_normalisation("flood", flood, factors);
    const auto image = [&](const std::string& run, const Cylinder& water, const char* normalisation) {
        return laboratory.image(
            run, {"--normalisation", laboratory.path(normalisation), "--attenuation", water.text(),
                  "--voxel-mm", "1", "--fov-mm", "44", "--iterations", "12"});
    };
    const Cylinder known{0, 0, 12, 36};
    const Cylinder around_known{0, 0, 12, 40};
    laboratory.acquire("known", 3,
                       {"--seed", "5", "--object", around_known.text(), "--cylinder", known.text() + ",3"});
    image("known", around_known, factors);
    const double background = 3000 / known.ml();
    laboratory.derive_activity(known, background, factors, "quantitative.h5");

    const Cylinder body{5, -3, 12, 36};
    const Cylinder water{5, -3, 12, 40};
    const std::vector<Cylinder> rods = {{10, -3, 3, 36}, {2, -8, 3, 36}};
    std::vector<std::string> phantom = {"--seed",     "6",          "--object",
                                        water.text(), "--cylinder", body.text() + ",3"};
    for (const Cylinder& rod : rods)  // four times the concentration
        phantom.insert(phantom.end(), {"--cylinder", rod.text() + ",0.5625"});
    laboratory.acquire("rods", 3, phantom);
    const auto found = image("rods", water, "quantitative.h5");
    INFO(found.output);
    CHECK(found.statement.at("unit") == "kBq/ml");
    const double of_background = found.values.mean([&](double x, double y, double z) {
        return body.contains(x, y, z, 2.5) && !in_any(rods, x, y, z, -2);
    });
    const double of_rods =
        found.values.mean([&](double x, double y, double z) { return in_any(rods, x, y, z, 1.5); });
    CAPTURE(background, of_background, of_rods);
    CHECK(of_background == Approx(background).epsilon(0.05));
    CHECK(of_rods == Approx(4 * background).epsilon(0.05));
    // 9.2 % of the true pairs, by the truth of the simulator.
    CHECK(found.statement.at("corrections").at("scatter").at("share_of_prompts").get<double>() ==
          Approx(0.089).epsilon(0.12));
}

// Activity concentrations in images: a scanner with uneven and dead crystals and dead time, and phantoms that
// attenuate and scatter, simulated, acquired and imaged with the real programs.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "tests/support/catch.hpp"
#include "tests/support/image_file.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/normalisation/normalisation.hpp"
#include "tools/petsim/detector/detector.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

struct Cylinder {
    double x;
    double y;
    double radius;
    double length;
    [[nodiscard]] double ml() const { return std::numbers::pi * radius * radius * length / 1000; }
    [[nodiscard]] std::string text() const {
        return std::to_string(x) + "," + std::to_string(y) + ",0," + std::to_string(radius) + "," +
               std::to_string(length);
    }
    /// At least `margin` from its surface, negative: outside.
    [[nodiscard]] bool contains(double px, double py, double pz, double margin) const {
        return std::hypot(px - x, py - y) < radius - margin && std::abs(pz) < length / 2 - 4;
    }
};

/// A scanner whose crystals differ by 14 %, with a dead detector unit, and the normalisation that says so.
class Laboratory {
  public:
    /// `depth`: photons interact behind the front faces, and the normalisation is derived from a run of a
    /// cylinder without scatter.
    Laboratory(const std::string& name, std::uint64_t dead_time_ticks, bool depth = false)
        : name_(name),
          depth_(depth),
          scanner_(config::load_scanner(examples() / (name + ".scanner.json"))),
          dead_time_(dead_time_ticks) {
        std::filesystem::copy_file(examples() / (name + ".scanner.json"),
                                   directory_ / (name + ".scanner.json"));
        auto configuration = nlohmann::json::parse(read_file(examples() / (name + ".json")));
        configuration["coincidence"]["multiples_policy"] = "RemoveMultiples";
        configuration["pipeline"]["backend"] = "cpu";
        configuration["calibration"] = "calibration.h5";
        write_file(directory_ / "daemon.json", configuration.dump());
        std::filesystem::create_directory(directory_ / "data");
        run(PETSIM_PROGRAM,
            {"make-detector", "--scanner", path(name + ".scanner.json"), "--output", path("detector.h5"),
             "--calibration", path("calibration.h5"), "--efficiency-spread", "0.14", "--dead", "0.003",
             "--time-spread-ps", "0", "--gain-spread", "0"});
        if (depth) {
            derive();
        } else {
            normalise();
        }
    }

    void acquire(const std::string& run_name, double seconds, const std::vector<std::string>& phantom) {
        std::vector<std::string> arguments = {"--scanner",         path(name_ + ".scanner.json"),
                                              "--calibration",     path("calibration.h5"),
                                              "--detector",        path("detector.h5"),
                                              "--crystals",        depth_ ? "depth" : "surface",
                                              "--efficiency",      "0.6",
                                              "--threads",         "2",
                                              "--dead-time-ticks", std::to_string(dead_time_),
                                              "--tag-dead-time",   "3:0.02",
                                              "--silent-unit",     "5.1@0-1000",
                                              "--duration-s",      std::to_string(seconds),
                                              "--write",           path(run_name + ".pcap")};
        arguments.insert(arguments.end(), phantom.begin(), phantom.end());
        run(PETSIM_PROGRAM, arguments);
        run(PETACQD_PROGRAM,
            {"--config", path("daemon.json"), "--replay", path(run_name + ".pcap"), "--run", run_name});
        std::filesystem::remove(directory_ / (run_name + ".pcap"));
    }

    struct Image {
        ImageFile values;
        nlohmann::json statement;
        std::string output;
    };
    Image image(const std::string& run_name, std::vector<std::string> options) {
        std::vector<std::string> arguments = {"image",    path("data/" + run_name),
                                              "--output", path("image"),
                                              "--force",  "--smooth-mm",
                                              "0",        "--backend",
                                              "cpu",      "--threads",
                                              "2"};
        if (!depth_) arguments.insert(arguments.end(), {"--depth-mm", "0"});
        arguments.insert(arguments.end(), options.begin(), options.end());
        std::string out = run(PETLM_PROGRAM, arguments);
        return {ImageFile(directory_ / "image" / "image.nii"),
                nlohmann::json::parse(read_file(directory_ / "image" / "image.json")), out};
    }

    /// Writes the factor that makes `found` the true concentration into the normalisation.
    void calibrate(double found, double truth) {
        normalisation_.activity_factor = truth / found;
        save(directory_ / "normalisation.h5", scanner_.geometry, normalisation_);
    }
    /// The same by petcal, of the latest image.
    void derive_activity(const Cylinder& known, double truth) {
        run(PETCAL_PROGRAM,
            {"derive", "activity", "--scanner", path(name_ + ".scanner.json"), "--normalisation",
             path("normalisation.h5"), "--image", path("image"), "--cylinder", known.text(),
             "--concentration-kBq-ml", std::to_string(truth), "-o", path("quantitative.h5")});
    }
    [[nodiscard]] std::string path(const std::string& name) const { return (directory_ / name).string(); }

  private:
    static std::filesystem::path examples() { return PETACQ_SOURCE_DIR "/config/examples"; }
    static std::string run(const char* program, const std::vector<std::string>& arguments) {
        const Outcome outcome = run_program(program, arguments);
        INFO(outcome.out << outcome.err);
        REQUIRE(outcome.status == 0);
        return outcome.out;
    }
    void derive() {
        const Cylinder flood{0, 0, 20, 60};
        acquire("flood", 10, {"--seed", "3", "--scatter", "0", "--cylinder", flood.text() + ",5"});
        run(PETCAL_PROGRAM, {"derive", "normalisation", "--scanner", path(name_ + ".scanner.json"), "--run",
                             path("data/flood"), "--cylinder", flood.text(), "-o", path("normalisation.h5")});
    }
    void normalise() {
        const auto& g = scanner_.geometry;
        const auto detector = sim::load_detector(directory_ / "detector.h5", g);
        normalisation_ = normalisation::Normalisation::even(g);
        double sum = 0;
        for (std::uint32_t i = 0; i < g.crystal_count(); ++i) {
            const auto& crystal = detector.crystals[i];
            normalisation_.efficiency[i] = crystal.state == sim::CrystalState::dead ? 0 : crystal.efficiency;
        }
        for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local)
            normalisation_.efficiency[g.crystal(5, 1, local)] = 0;  // --silent-unit 5.1
        for (const float efficiency : normalisation_.efficiency)
            sum += efficiency;
        for (float& efficiency : normalisation_.efficiency)
            efficiency *= static_cast<float>(g.crystal_count() / sum);
        save(directory_ / "normalisation.h5", g, normalisation_);
    }

    TemporaryDirectory directory_;
    std::string name_;
    bool depth_;
    config::Scanner scanner_;
    std::uint64_t dead_time_;
    normalisation::Normalisation normalisation_;
};

}  // namespace

TEST_CASE("image: activity in kBq/ml after calibration by another cylinder", "[.long]") {
    Laboratory laboratory("mouse", 200'000);
    const Cylinder known{0, 0, 12, 60};
    constexpr double known_mbq = 5;
    laboratory.acquire("known", 1,
                       {"--seed", "5", "--cylinder", known.text() + ",5", "--object", known.text()});
    const std::vector<std::string> how = {
        "--normalisation", laboratory.path("normalisation.h5"), "--fov-mm", "36", "--iterations", "16"};
    const auto with = [&](const std::string& object) {
        auto options = how;
        options.insert(options.end(), {"--attenuation", object});
        return options;
    };
    const auto first = laboratory.image("known", with(known.text()));
    CHECK(first.statement.at("unit") == "kBq/ml, uncalibrated");
    const double found =
        first.values.mean([&](double x, double y, double z) { return known.contains(x, y, z, 3); });
    laboratory.calibrate(found, 1000 * known_mbq / known.ml());

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
    const auto in_rods = [&](double x, double y, double z, double margin) {
        return std::any_of(rods.begin(), rods.end(),
                           [&](const Cylinder& r) { return r.contains(x, y, z, margin); });
    };
    const double found_background = image.values.mean([&](double x, double y, double z) {
        return body.contains(x, y, z, 2) && !in_rods(x, y, z, -2) && !cold.contains(x, y, z, -2);
    });
    const double found_rods =
        image.values.mean([&](double x, double y, double z) { return in_rods(x, y, z, 1.5); });
    const double found_cold =
        image.values.mean([&](double x, double y, double z) { return cold.contains(x, y, z, 1.5); });
    CAPTURE(background, rod, found_background, found_rods, found_cold);
    CHECK(found_background == Approx(background).epsilon(0.03));
    CHECK(found_rods == Approx(rod).epsilon(0.05));
    CHECK(found_cold < 0.3 * background);
}

TEST_CASE("image: a small scanner states the activity of a cylinder") {
    Laboratory laboratory("small", 50'000);
    const Cylinder known{0, 0, 6, 30};
    laboratory.acquire("known", 0.5,
                       {"--seed", "7", "--cylinder", known.text() + ",2", "--object", known.text()});
    const Cylinder other{5, -3, 8, 24};
    laboratory.acquire("other", 0.5,
                       {"--seed", "8", "--cylinder", other.text() + ",2", "--object", other.text()});
    const auto image = [&](const std::string& name, const Cylinder& object) {
        return laboratory.image(
            name, {"--normalisation", laboratory.path("normalisation.h5"), "--attenuation", object.text(),
                   "--voxel-mm", "3", "--fov-mm", "33", "--iterations", "6"});
    };
    const auto mean = [](const Laboratory::Image& of, const Cylinder& in) {
        return of.values.mean([&](double x, double y, double z) { return in.contains(x, y, z, 2.5); });
    };
    laboratory.calibrate(mean(image("known", known), known), 2000 / known.ml());
    const auto found = image("other", other);
    INFO(found.output);
    CHECK(found.statement.at("unit") == "kBq/ml");
    CHECK(mean(found, other) == Approx(2000 / other.ml()).epsilon(0.06));
}

TEST_CASE("image: rods off the axis, with depth of interaction, scatter and a derived normalisation",
          "[.long]") {
    Laboratory laboratory("small", 50'000, true);
    const auto image = [&](const std::string& run, const Cylinder& water, const char* normalisation) {
        return laboratory.image(
            run, {"--normalisation", laboratory.path(normalisation), "--attenuation", water.text(),
                  "--voxel-mm", "1", "--fov-mm", "44", "--iterations", "12"});
    };
    const Cylinder known{0, 0, 12, 36};
    const Cylinder around_known{0, 0, 12, 40};
    laboratory.acquire("known", 3,
                       {"--seed", "5", "--object", around_known.text(), "--cylinder", known.text() + ",3"});
    image("known", around_known, "normalisation.h5");
    const double background = 3000 / known.ml();
    laboratory.derive_activity(known, background);

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
    const auto in_rods = [&](double x, double y, double z, double margin) {
        return std::any_of(rods.begin(), rods.end(),
                           [&](const Cylinder& r) { return r.contains(x, y, z, margin); });
    };
    const double of_background = found.values.mean(
        [&](double x, double y, double z) { return body.contains(x, y, z, 2.5) && !in_rods(x, y, z, -2); });
    const double of_rods =
        found.values.mean([&](double x, double y, double z) { return in_rods(x, y, z, 1.5); });
    CAPTURE(background, of_background, of_rods);
    CHECK(of_background == Approx(background).epsilon(0.05));
    CHECK(of_rods == Approx(4 * background).epsilon(0.05));
    // 9.2 % of the true pairs, by the truth of the simulator.
    CHECK(found.statement.at("corrections").at("scatter").at("share_of_prompts").get<double>() ==
          Approx(0.089).epsilon(0.12));
}

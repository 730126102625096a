// The values of an image: a phantom of rods, simulated, acquired and imaged with the real programs.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "tests/support/catch.hpp"
#include "tests/support/image_file.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq::test;

namespace {

/// A cylinder around the axis of the scanner, and rods in it with four times its concentration.
struct Phantom {
    static constexpr double radius = 15;  // mm
    static constexpr double length = 40;
    static constexpr double rod_radius = 3;
    static constexpr std::array<std::array<double, 2>, 3> rods = {{{8, 0}, {-4, 7}, {-4, -7}}};
    static constexpr double mbq = 40;

    /// Of the background, MBq per mm^3.
    static double concentration() {
        return mbq / (std::numbers::pi * length *
                      (radius * radius + 3 * static_cast<double>(rods.size()) * rod_radius * rod_radius));
    }
    static double to_nearest_rod(double x, double y) {
        double nearest = radius;
        for (const auto& rod : rods)
            nearest = std::min(nearest, std::hypot(x - rod[0], y - rod[1]));
        return nearest;
    }
    /// At least 2 mm from all edges, where the image is blurred.
    static bool in_background(double x, double y, double z) {
        return std::hypot(x, y) < radius - 2 && std::abs(z) < length / 2 - 4 &&
               to_nearest_rod(x, y) > rod_radius + 2;
    }
    static bool in_rod(double x, double y, double z) {
        return to_nearest_rod(x, y) < rod_radius / 2 && std::abs(z) < length / 2 - 4;
    }
};

/// A scanner, and what it sends while the phantom lies in it.
class Acquisition {
  public:
    static constexpr double seconds = 0.5;
    static constexpr double efficiency = 0.5;

    Acquisition() {
        const std::filesystem::path examples = PETACQ_SOURCE_DIR "/config/examples";
        std::filesystem::copy_file(examples / "mouse.scanner.json", directory_ / "mouse.scanner.json");
        configuration_ = nlohmann::json::parse(read_file(examples / "mouse.json"));
        std::filesystem::create_directory(directory_ / "data");
        run(PETCAL_PROGRAM, {"make", "--scanner", path("mouse.scanner.json"), "--output", path("mouse.h5")});
        std::vector<std::string> arguments = {"--crystals",    "surface",
                                              "--scanner",     path("mouse.scanner.json"),
                                              "--calibration", path("mouse.h5"),
                                              "--write",       path("phantom.pcap"),
                                              "--scatter",     "0",
                                              "--efficiency",  std::to_string(efficiency),
                                              "--duration-s",  std::to_string(seconds),
                                              "--seed",        "21",
                                              "--threads",     "2"};
        const auto add = [&](double x, double y, double radius, double times) {
            const double volume = std::numbers::pi * radius * radius * Phantom::length;
            nlohmann::json numbers = {
                x, y, 0, radius, Phantom::length, times * Phantom::concentration() * volume};
            const std::string list = numbers.dump();
            arguments.insert(arguments.end(), {"--cylinder", list.substr(1, list.size() - 2)});
        };
        add(0, 0, Phantom::radius, 1);
        for (const auto& rod : Phantom::rods)
            add(rod[0], rod[1], Phantom::rod_radius, 3);
        run(PETSIM_PROGRAM, arguments);
    }

    struct Image {
        ImageFile values;
        std::string output;
    };
    Image image(const std::string& policy) {
        configuration_["coincidence"]["multiples_policy"] = policy;
        configuration_["pipeline"]["backend"] = "cpu";
        write_file(directory_ / "mouse.json", configuration_.dump());
        run(PETACQD_PROGRAM,
            {"--config", path("mouse.json"), "--replay", path("phantom.pcap"), "--run", policy});
        // More iterations than a quick look needs: hot rods make the cylinder around them converge slowly.
        const std::string out =
            run(PETLM_PROGRAM,
                {"image", path("data/" + policy), "--output", path("image." + policy), "--depth-mm", "0",
                 "--fov-mm", "40", "--iterations", "8", "--smooth-mm", "0", "--backend", "cpu"});
        return {ImageFile(directory_ / ("image." + policy) / "image.nii"), out};
    }

  private:
    [[nodiscard]] std::string path(const std::string& name) const { return (directory_ / name).string(); }
    static std::string run(const char* program, const std::vector<std::string>& arguments) {
        const Outcome outcome = run_program(program, arguments);
        INFO(outcome.out << outcome.err);
        REQUIRE(outcome.status == 0);
        return outcome.out;
    }

    TemporaryDirectory directory_;
    nlohmann::json configuration_;
};

}  // namespace

TEST_CASE("image: the background of a rod phantom at 40 MBq has its expected value", "[.long]") {
    Acquisition acquisition;
    const auto check = [&](const std::string& policy, const std::string& pile_up) {
        const auto [image, output] = acquisition.image(policy);
        INFO(policy << ":\n" << output);
        CHECK_THAT(output, contains(pile_up));
        // The image shows the decays as if every photon that meets a crystal were detected.
        const double expected = Phantom::concentration() * 1e6 * std::pow(image.voxel, 3) *
                                Acquisition::seconds * std::pow(Acquisition::efficiency, 2);
        const double background = image.mean(Phantom::in_background) / expected;
        const double rods = image.mean(Phantom::in_rod) / expected;
        CAPTURE(background, rods);
        CHECK(std::abs(background - 1) < 0.02);
        CHECK(rods == Approx(4).epsilon(0.05));
    };
    check("RemoveMultiples", "Pile-up: values multiplied by 1.17");
    check("TakeAllGoods", "Pile-up: values multiplied by 1.00");
}

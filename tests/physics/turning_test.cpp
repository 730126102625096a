// Two heads that turn: points at their places and activities in kBq/ml, of the whole run and of parts of it.
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/base/json_file.hpp"
#include "tests/physics/laboratory.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/turning_scanner.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

using At = std::array<double, 3>;

Equipment turning_heads() {
    Equipment equipment{
        petacq::config::read_json_file(std::string(PETACQ_SOURCE_DIR) +
                                       "/config/examples/scanners/two-heads.scanner.json"),
        {{"receive", {{"sockets", {{{"address", "127.0.0.1"}, {"port", 9601}}}}}},
         {"coincidence", {{"window_ticks", 400}, {"delay_ticks", 4000}, {"min_module_difference", nullptr}}},
         {"sources", {{"accept_any", true}}},
         {"control", {{"socket", "petacqd.sock"}}}}};
    equipment.detector = {"--time-spread-ps", "0", "--gain-spread", "0"};
    equipment.simulation = {"--scatter", "0", "--efficiency", "1", "--seed", "71"};
    return equipment;
}

/// Centre of gravity within 4 mm.
At centre_near(const ImageFile& image, const At& at) {
    double sum = 0;
    At centre{};
    image.each([&](float value, double x, double y, double z) {
        if (std::hypot(x - at[0], y - at[1], z - at[2]) > 4) return;
        sum += value;
        centre[0] += value * x;
        centre[1] += value * y;
        centre[2] += value * z;
    });
    for (double& v : centre)
        v /= sum;
    return centre;
}

std::vector<std::string> phantom_of(const std::vector<At>& points, const std::string& mbq) {
    std::vector<std::string> out;
    for (const At& p : points)
        out.insert(out.end(), {"--point", std::to_string(p[0]) + "," + std::to_string(p[1]) + "," +
                                              std::to_string(p[2]) + "," + mbq});
    return out;
}

void check_points(const Laboratory::Image& image, const std::vector<At>& points, double within_mm) {
    for (const At& p : points) {
        const At found = centre_near(image.values, p);
        CAPTURE(p[0], p[1], p[2], found[0], found[1], found[2]);
        for (std::size_t axis = 0; axis < 3; ++axis)
            CHECK(found[axis] == Approx(p[axis]).margin(within_mm));
    }
}

const std::vector<At> points = {{0, 0, 1}, {12, 3, -5}, {-4, -16, 6}};

}  // namespace

TEST_CASE("a scanner that turns: kBq/ml when a board is silent for a part of the time at one angle",
          "[rotation][loss][.long]") {
    Laboratory laboratory(
        {turning_scanner(),
         {{"receive", {{"sockets", {{{"address", "127.0.0.1"}, {"port", 9601}}}}}},
          {"watermark", {{"source_timeout_ms", 100}}},
          {"coincidence", {{"window_ticks", 400}, {"delay_ticks", 4000}, {"min_module_difference", nullptr}}},
          {"control", {{"socket", "petacqd.sock"}}}},
         {"--time-spread-ps", "0", "--gain-spread", "0"},
         {"--scatter", "0", "--efficiency", "1"}});
    const Cylinder flood{0, 0, 9, 24};
    const Cylinder known{0, 0, 7, 20};
    const Cylinder test{4, -2, 5, 20};
    const auto acquire = [&](const std::string& run, double seconds, const Cylinder& c, const char* mbq,
                             const char* seed, const std::vector<std::string>& more) {
        std::vector<std::string> phantom = {"--cylinder", c.text() + "," + mbq, "--seed", seed};
        phantom.insert(phantom.end(), more.begin(), more.end());
        laboratory.acquire(run, seconds, phantom);
    };
    acquire("flood", 6, flood, "2", "71", {"--rotation", "30"});
    laboratory.derive_normalisation("flood", flood, "norm.h5");
    const auto mean = [&](const std::string& run, const Cylinder& c) {
        return laboratory
            .image(run, {"--voxel-mm", "1.25", "--fov-mm", "24", "--iterations", "4", "--normalisation",
                         laboratory.path("norm.h5")})
            .mean(c, 2.5);
    };
    acquire("known", 8, known, "1", "72", {"--rotation", "30"});
    const double of_known = mean("known", known) * known.ml() / 1000;

    const std::vector<std::string> steps = {"--rotation-steps", "22.5,1"};
    acquire("whole", 8, test, "0.8", "73", steps);
    std::vector<std::string> lossy = steps;
    lossy.insert(lossy.end(), {"--silent", "0@3.2-3.8"});
    acquire("lossy", 8, test, "0.8", "73", lossy);
    const auto value = [&](const std::string& run) { return mean(run, test) / of_known; };
    const double kbq_per_ml = 800 / test.ml();
    const double complete = value("whole");
    CHECK(complete == Approx(kbq_per_ml).epsilon(0.03));
    // An angle that counts less changes an image of eight angles a little even if nothing was lost.
    const double found = value("lossy");
    CHECK(found == Approx(complete).epsilon(0.02));

    // The same prompts, with the time cut out: a file with a hole, of which no loss is known.
    const auto petlm = [&](std::vector<std::string> arguments) {
        const Outcome outcome = run_program(PETLM_PROGRAM, arguments);
        INFO(outcome.err);
        REQUIRE(outcome.status == 0);
    };
    const std::string whole = laboratory.path("data/whole");
    const auto file = [&](const std::string& name) { return laboratory.path("data/" + name); };
    petlm({"cut", whole, "-o", file("a.plm"), "--to-s", "3.2"});
    petlm({"cut", whole, "-o", file("b.plm"), "--from-s", "3.8"});
    petlm({"merge", file("a.plm"), file("b.plm"), "-o", file("hole.plm")});
    CHECK(value("hole.plm") == Approx(found).epsilon(0.004));
}

TEST_CASE("two heads that turn: points are at their places, whichever way they turn", "[rotation][.long]") {
    const auto turning = GENERATE(std::vector<std::string>{"--rotation", "60"},
                                  std::vector<std::string>{"--rotation-steps=-12,0.05"});
    Laboratory laboratory(turning_heads());
    std::vector<std::string> phantom = phantom_of(points, "0.7");
    phantom.insert(phantom.end(), turning.begin(), turning.end());
    laboratory.acquire("points", 0.75, phantom);
    check_points(laboratory.image("points", {"--fov-mm", "50", "--voxel-mm", "1", "--iterations", "4"}),
                 points, 0.2);
}

TEST_CASE("two heads that turn: kBq/ml of the whole, of a part, of frames and of less than half a turn",
          "[rotation][.long]") {
    Laboratory laboratory(turning_heads());
    const Cylinder flood{0, 0, 22, 40};
    const Cylinder known{0, 0, 18, 30};
    const Cylinder test{7, -3, 12, 30};  // off the axis
    const auto mbq_of = [](const Cylinder& c, double kbq_per_ml) {
        return c.text() + "," + std::to_string(kbq_per_ml * c.ml() / 1000);
    };
    laboratory.acquire("flood", 30, {"--cylinder", mbq_of(flood, 60), "--rotation", "6"});
    laboratory.derive_normalisation("flood", flood, "norm.h5");
    const auto image = [&](const std::string& run, const Cylinder& water, const std::string& normalisation) {
        return laboratory.image(
            run, {"--voxel-mm", "2.5", "--fov-mm", "60", "--iterations", "2", "--normalisation",
                  laboratory.path(normalisation), "--attenuation", water.text()});
    };
    laboratory.acquire("known", 15,
                       {"--cylinder", mbq_of(known, 100), "--object", known.text(), "--rotation", "8"});
    image("known", known, "norm.h5");
    laboratory.derive_activity(known, 100, "norm.h5", "calibrated.h5");
    const auto value = [&](const std::string& run) {
        const auto made = image(run, test, "calibrated.h5");
        CHECK(made.statement["unit"] == "kBq/ml");
        return made.mean(test, 4);
    };
    const auto acquire = [&](const std::string& run, double seconds,
                             const std::vector<std::string>& turning) {
        std::vector<std::string> phantom = {"--cylinder", mbq_of(test, 150), "--object", test.text()};
        phantom.insert(phantom.end(), turning.begin(), turning.end());
        laboratory.acquire(run, seconds, phantom);
    };
    acquire("test", 20, {"--rotation", "6"});
    CHECK(value("test") == Approx(150).epsilon(0.03));
    // A part of the run has its own angles: half a turn of two.
    const Outcome cut =
        run_program(PETLM_PROGRAM, {"cut", laboratory.path("data/test"), "-o",
                                    laboratory.path("data/part.plm"), "--from-s", "3", "--to-s", "8"});
    INFO(cut.err);
    REQUIRE(cut.status == 0);
    CHECK(value("part.plm") == Approx(150).epsilon(0.03));

    acquire("steps", 18, {"--rotation-steps=20,1"});
    CHECK(value("steps") == Approx(150).epsilon(0.03));

    // Less than half a turn: directions are missing.
    acquire("third", 12, {"--rotation", "2"});
    CHECK(value("third") == Approx(150).epsilon(0.05));

    // What cannot hold a scanner that turns says so.
    const Outcome refused =
        run_program(PETLM_PROGRAM, {"export", "--format", "castor", laboratory.path("data/test"), "--output",
                                    laboratory.path("castor")});
    CHECK(refused.status != 0);
    CHECK_THAT(refused.err, contains("the scanner turns"));
}

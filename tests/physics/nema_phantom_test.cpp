// The image quality phantom of NEMA NU 4-2008, simulated, acquired, imaged and measured with the real
// programs.
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "tests/end_to_end/nema/decagon.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

/// Sources with the same concentration in the uniform part, around the cold chambers and in the rods.
json phantom(double mbq) {
    constexpr double pi = std::numbers::pi;
    const auto cylinder = [](double x, double y, double z, double radius, double length, double times = 1) {
        // The activity is the volume that it fills.
        return json{{"type", "cylinder"},
                    {"centre_mm", {x, y, z}},
                    {"radius_mm", radius},
                    {"length_mm", length},
                    {"activity_MBq", times * std::numbers::pi * radius * radius * length}};
    };
    json sources = {cylinder(0, 0, -2.5, 15, 15)};
    json around_cold = cylinder(0, 0, -17.5, 15, 15, 1 - 2 * 16.0 / 225);
    for (const double x : {7.5, -7.5})
        around_cold["cold"].push_back({{"centre_mm", {x, 0, -17.5}}, {"radius_mm", 4}, {"length_mm", 15}});
    sources.push_back(around_cold);
    for (int rod = 0; rod < 5; ++rod) {
        const double angle = (90 + 72 * rod) * pi / 180;
        sources.push_back(cylinder(7 * std::cos(angle), 7 * std::sin(angle), 15, (5 - rod) / 2.0, 20));
    }
    double volume = 0;
    for (const auto& source : sources)
        volume += source["activity_MBq"].get<double>();
    for (auto& source : sources)
        source["activity_MBq"] = source["activity_MBq"].get<double>() * mbq / volume;
    return {{"sources", sources}};
}

std::string run(const char* program, const std::vector<std::string>& arguments) {
    const Outcome outcome = run_program(program, arguments);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.status == 0);
    return outcome.out;
}

}  // namespace

TEST_CASE("nema: the image quality phantom has its rods and cold chambers where and as they are",
          "[.long][nema]") {
    const TemporaryDirectory directory;
    const auto path = [&](const std::string& name) { return (directory / name).string(); };
    const std::filesystem::path examples = PETACQ_SOURCE_DIR "/config/examples";
    for (const char* file : {"mouse.scanner.json", "mouse.json"})
        std::filesystem::copy_file(examples / file, directory / file);
    std::filesystem::create_directory(directory / "data");
    write_file(directory / "phantom.json", phantom(20).dump());
    run(PETCAL_PROGRAM, {"make", "--scanner", path("mouse.scanner.json"), "--output", path("mouse.h5")});
    run(PETSIM_PROGRAM, {"--crystals", "surface", "--scanner", path("mouse.scanner.json"), "--calibration",
                         path("mouse.h5"), "--source", path("phantom.json"), "--scatter", "0", "--duration-s",
                         "3", "--threads", "2", "--write", path("iq.pcap"), "--quiet"});
    run(PETACQD_PROGRAM, {"--config", path("mouse.json"), "--replay", path("iq.pcap"), "--run", "iq"});
    run(PETLM_PROGRAM,
        {"image", path("data/iq"), "--output", path("image"), "--depth-mm", "0", "--fov-mm", "36",
         "--voxel-mm", "0.6", "--iterations", "4", "--smooth-mm", "1.2", "--backend", "cpu"});
    const std::string said =
        run(PETLM_PROGRAM, {"nema", "image-quality", path("image"), "--output", path("results")});
    const json results = json::parse(read_file(directory / "results" / "results.json"));
    INFO(said << results["inputs"].dump());
    const auto value = [&](const std::string& key) { return results["figures"][key]["value"].get<double>(); };
    const json& rods = results["tables"]["recovery"]["rows"];
    for (std::size_t rod = 0; rod < 5; ++rod) {
        const double angle = (90.0 + 72.0 * static_cast<double>(4 - rod)) * std::numbers::pi / 180;
        CAPTURE(rod);
        CHECK(rods[rod][2].get<double>() == Approx(7 * std::cos(angle)).margin(1.5));
        CHECK(rods[rod][3].get<double>() == Approx(7 * std::sin(angle)).margin(1.5));
        if (rod > 0) CHECK(rods[rod][4].get<double>() > rods[rod - 1][4].get<double>() - 0.1);
    }
    CHECK(value("recovery_1mm") < 0.5);
    CHECK(value("recovery_5mm") == Approx(1.05).margin(0.15));
    for (const char* cold : {"spill_over_1", "spill_over_2"})
        CHECK(value(cold) < 0.2);
    CHECK(value("uniformity_percent_std") < 15);
}

TEST_CASE("nema: noise makes the recovery of the largest voxel larger, not that of the fit",
          "[.long][nema]") {
    const TemporaryDirectory directory;
    const auto path = [&](const std::string& name) { return (directory / name).string(); };
    std::filesystem::create_directory(directory / "data");
    json configuration = json::parse(read_file(PETACQ_SOURCE_DIR "/config/examples/mouse.json"));
    configuration.erase("$schema");
    configuration.merge_patch({{"scanner", "scanner.json"}, {"calibration", "scanner.h5"}});
    write_file(directory / "scanner.json", decagon().dump());
    write_file(directory / "petacqd.json", configuration.dump());
    write_file(directory / "phantom.json", phantom(10).dump());
    run(PETCAL_PROGRAM, {"make", "--scanner", path("scanner.json"), "--output", path("scanner.h5")});
    run(PETSIM_PROGRAM,
        {"--crystals", "surface", "--scanner", path("scanner.json"), "--calibration", path("scanner.h5"),
         "--source", path("phantom.json"), "--scatter", "0", "--duration-s", "2", "--seed", "31", "--threads",
         "2", "--write", path("iq.pcap"), "--quiet"});
    run(PETACQD_PROGRAM, {"--config", path("petacqd.json"), "--replay", path("iq.pcap"), "--run", "iq"});
    run(PETLM_PROGRAM, {"cut", path("data/iq"), "--to-s", "0.5", "--output", path("data/part.plm")});
    const auto results = [&](const std::string& name) {
        run(PETLM_PROGRAM,
            {"image", path("data/" + name), "--output", path("image-" + name), "--depth-mm", "0", "--fov-mm",
             "36", "--voxel-mm", "0.6", "--iterations", "10", "--subsets", "4", "--backend", "cpu"});
        run(PETLM_PROGRAM,
            {"nema", "image-quality", path("image-" + name), "--output", path("results-" + name)});
        return json::parse(read_file(directory / ("results-" + name) / "results.json"));
    };
    const json whole = results("iq");
    const json part = results("part.plm");
    const auto found = [](const json& of, const std::string& key) {
        const json& figure = of[of["beside"].contains(key) ? "beside" : "figures"][key];
        const json& error = figure["error"];
        return std::array{figure["value"].get<double>(), error.is_null() ? 0 : error.get<double>()};
    };
    INFO(whole["figures"].dump() << whole["beside"].dump() << part["figures"].dump()
                                 << part["beside"].dump());
    // The rods hold the concentration of the uniform part; the blur takes what the formula says.
    const double sigma = found(whole, "rods_fwhm_mm")[0] / 2.3548;
    for (const int diameter : {3, 4, 5}) {
        CAPTURE(diameter);
        const auto fitted = found(whole, "recovery_fitted_" + std::to_string(diameter) + "mm");
        CHECK(fitted[0] / (1 - std::exp(-diameter * diameter / (8 * sigma * sigma))) ==
              Approx(1).margin(0.06));
        CHECK(fitted[1] < 0.03);
        CHECK(found(whole, "recovery_" + std::to_string(diameter) + "mm")[0] > fitted[0]);
    }
    // A quarter of the counts: more noise, and a larger largest voxel.
    CHECK(found(part, "uniformity_percent_std")[0] > 1.4 * found(whole, "uniformity_percent_std")[0]);
    CHECK(found(part, "recovery_5mm")[0] > found(whole, "recovery_5mm")[0] + 0.05);
    const auto of_part = found(part, "recovery_fitted_5mm");
    const auto of_whole = found(whole, "recovery_fitted_5mm");
    CHECK(std::abs(of_part[0] - of_whole[0]) < 2 * std::hypot(of_part[1], of_whole[1]));
}

// A scanner of more modules than some programs hold pairs of: it is acquired and imaged, and they say so.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace petacq::test;
using nlohmann::json;

TEST_CASE("a scanner of 4172 modules: image and daily check say what they do not find",
          "[e2e][arrangements][loss][check]") {
    // Only the two panels make pairs.
    const json scanner = json::parse(R"({
        "name": "large", "tick_ps": 10, "position_size": 16, "frame_version": 2,
        "module_types": [{"name": "m", "layers": [
            {"y": {"count": 1, "pitch_mm": 4}, "z": {"count": 1, "pitch_mm": 4}, "length_mm": 20, "material": "LYSO"}]}],
        "modules": [
            {"type": "m", "group": "left", "panel": {"radius_mm": 40, "angle_deg": 0, "count": 6, "pitch_mm": 4.1},
             "along_z": {"count": 6, "pitch_mm": 4.1}},
            {"type": "m", "group": "right", "panel": {"radius_mm": 40, "angle_deg": 180, "count": 6, "pitch_mm": 4.1},
             "along_z": {"count": 6, "pitch_mm": 4.1}},
            {"type": "m", "group": "outer", "ring": {"count": 205, "radius_mm": 133}, "along_z": {"count": 20, "pitch_mm": 4.1}}],
        "good_pairs": {"between": [["left", "right"]]}})");
    const TemporaryDirectory directory;
    write_file(directory / "large.scanner.json", scanner.dump());
    const Site site({{"spectra", {{"enabled", true}}},
                     {"sources", {{"accept_any", true}}},
                     {"coincidence", {{"window_ticks", 400}, {"min_module_difference", nullptr}}}},
                    directory / "large.scanner.json");
    const auto path = [&](const char* name) { return (site.directory() / name).string(); };
    const auto run = [](const char* program, const std::vector<std::string>& arguments) {
        const Outcome outcome = run_program(program, arguments);
        INFO(outcome.out << outcome.err);
        REQUIRE(outcome.status == 0);
        return outcome.out;
    };
    run(PETSIM_PROGRAM, {"--scanner",       site.scanner(), "--calibration",     site.calibration(),
                         "--crystals",      "surface",      "--efficiency",      "1",
                         "--point",         "0,0,0,0.1",    "--dead-time-ticks", "100000",
                         "--tag-dead-time", "3:0.04",       "--sources",         "4",
                         "--duration-s",    "0.3",          "--write",           path("r.pcap")});
    run(PETACQD_PROGRAM, {"--config", site.configuration(), "--replay", path("r.pcap"), "--run", "r"});
    CHECK(coincidences_of(site.run("r") / "coincidences.plm").size() > 1000);
    const std::string said =
        run(PETLM_PROGRAM, {"image", site.run("r").string(), "-o", path("image"), "--voxel-mm", "8",
                            "--fov-mm", "40", "--iterations", "1", "--attenuation", "0,0,0,20,50",
                            "--scatter", "none", "--backend", "cpu", "--no-cache"});
    for (const std::string what : {"Dead time", "Loss"})
        CHECK_THAT(said,
                   contains(what + ": not corrected, as it is found for scanners of at most 4096 BDMs."));
    const Outcome checked =
        run_program(PETCAL_PROGRAM, {"check", site.run("r").string(), "--reference", site.run("r").string()});
    CHECK(checked.status == 78);
    CHECK_THAT(checked.err, contains("expected a scanner of at most 4096 BDMs, whose pairs fit into "
                                     "memory, found 4172"));
}

// A clock that steps by a nanosecond: health of a running daemon names its module.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <regex>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

TEST_CASE("a time step of one module appears in health, the log and its module", "[e2e][status]") {
    const Site site;
    json scanner = json::parse(read_file(site.scanner()));
    scanner["sources"] = json::array();
    for (int bdm = 0; bdm < 24; ++bdm)
        scanner["sources"].push_back({{"id", bdm}, {"bdms", {bdm}}});
    std::ofstream(site.scanner()) << scanner;
    Daemon daemon(site);
    daemon.start("step");
    const std::string ticks = std::to_string(std::lround(1000 / scanner["tick_ps"].get<double>()));
    Process petsim(
        PETSIM_PROGRAM,
        petsim_arguments(site, {"--cylinder", "0,0,0,10,20,0.3", "--sources", "24", "--duration-s", "12",
                                "--pace", "2", "--to", daemon.address(), "--clock-jump", "7@4.2:" + ticks}),
        site.directory() / "petsim");

    json status;
    const bool found = daemon.until([&](const json& s) {
        status = s;
        return std::any_of(s["health"]["reasons"].begin(), s["health"]["reasons"].end(),
                           [](const json& r) { return r["code"] == "detector_time_step"; });
    });
    INFO(status["health"].dump(1));
    INFO(status["modules"].dump(1));
    REQUIRE(found);
    for (const json& reason : status["health"]["reasons"]) {
        CHECK(reason["code"] == "detector_time_step");
        const std::string message = reason["message"];
        std::smatch part;
        REQUIRE(std::regex_search(message, part,
                                  std::regex(R"(^module 7: its times moved by \+([0-9.]+) ns since)")));
        CHECK(std::stod(part[1]) == Approx(0.9).margin(0.4));
    }
    for (const json& module : status["modules"]) {
        CHECK(module["health"] == (module["bdm"] == 7 ? "degraded" : "ok"));
        CHECK(std::abs(module["photopeak_keV"].get<double>() - 505) < 15);
        CHECK(module["prompts_per_single"] > 0);
        CHECK(module["mean_dt_ns"].is_number());
    }
    CHECK(daemon.log().find("degraded: module 7: its times moved by") != std::string::npos);
    daemon.stop();
    CHECK(daemon.terminate() == 0);
}

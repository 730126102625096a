// Faults of the detector, in health, the log, the status and the report of a running daemon.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <regex>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

/// False, with a warning: this petlm writes no reports.
bool reports_possible() {
    if (!contains(run_program(PETLM_PROGRAM, {"plot", "."}).err, "built without cairo")) return true;
    WARN("skipped: petlm was built without cairo");
    return false;
}

/// A site in which each module is a source of its own.
struct Detector {
    Site site;

    Detector() {
        json scanner = json::parse(read_file(site.scanner()));
        scanner["sources"] = json::array();
        for (int bdm = 0; bdm < 24; ++bdm)
            scanner["sources"].push_back({{"id", bdm}, {"bdms", {bdm}}});
        std::ofstream(site.scanner()) << scanner;
        ticks_per_ns = 1000 / scanner["tick_ps"].get<double>();
    }
    [[nodiscard]] std::string nanosecond() const { return std::to_string(std::lround(ticks_per_ns)); }
    void simulate(const std::vector<std::string>& more) const {
        std::vector<std::string> arguments{"--cylinder", "0,0,0,10,20,0.5", "--sources", "24", "--pace", "2"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        petacq::test::simulate(site, arguments);
    }
    [[nodiscard]] std::string report(const std::string& run) const {
        const Outcome plotted = run_program(PETLM_PROGRAM, {"plot", "--force", site.run(run).string()});
        REQUIRE(plotted.status == 0);
        return read_file(site.run(run) / "plot" / "report.html");
    }

    double ticks_per_ns = 0;
};

/// The reasons of health whose code begins with "detector_": code and message.
std::map<std::string, std::string> reasons_of(const json& status) {
    std::map<std::string, std::string> reasons;
    for (const json& reason : status["health"]["reasons"]) {
        const std::string code = reason["code"];
        if (code.starts_with("detector_")) reasons[code] = reason["message"];
    }
    return reasons;
}

/// The number in the first group of `pattern`, with which the text begins.
double number_in(const std::string& text, const std::string& pattern) {
    std::smatch part;
    INFO(text);
    REQUIRE(std::regex_search(text, part, std::regex("^" + pattern)));
    return std::stod(part[1]);
}

}  // namespace

TEST_CASE("faults of the detector appear with the data of the two seconds after them", "[e2e][status]") {
    if (!reports_possible()) return;
    const Detector detector;
    Daemon daemon(detector.site);
    daemon.start("faults");
    // Nothing is sent from 6.2 s on.
    detector.simulate({"--to", daemon.address(), "--duration-s", "6.2", "--clock-jump",
                       "7@4.2:" + detector.nanosecond(), "--gain-step", "12@4.2:2", "--silent-unit",
                       "3.2@4.2-100", "--noisy-crystal", "777@4.2:3000"});
    json status;
    std::map<std::string, std::string> reasons;
    const bool found = daemon.until([&](const json& s) {
        status = s;
        reasons = reasons_of(s);
        return reasons.size() == 4;
    });
    INFO(status["health"].dump(1));
    INFO(status["modules"].dump(1));
    REQUIRE(found);
    const std::string since = " since [45]\\.0 s";
    CHECK(number_in(reasons["detector_time_step"], R"(BDM 7: its times moved by \+([0-9.]+) ns)" + since) ==
          Approx(0.9).margin(0.3));
    CHECK(number_in(reasons["detector_gain_step"],
                    R"(BDM 12: its photopeak moved by \+([0-9.]+) %)" + since) == Approx(1.9).margin(0.5));
    CHECK(number_in(reasons["detector_unit_silent"], "BDM 3: DU (2) does not count" + since) == 2);
    CHECK(number_in(reasons["detector_noisy"],
                    "BDM 5: crystal 777 counts ([0-9]+) times as much as its neighbours" + since) > 5);
    for (const json& module : status["modules"]) {
        const int bdm = module["bdm"];
        const bool faulty = bdm == 3 || bdm == 5 || bdm == 7 || bdm == 12;
        INFO(bdm);
        CHECK(module["health"] == (faulty ? "degraded" : "ok"));
        CHECK(std::abs(module["photopeak_keV"].get<double>() - 510) < 15);
        CHECK(module["prompts_per_single"] > 0);
        CHECK(module["mean_dt_ns"].is_number());
    }
    daemon.stop();
    // The report finds the same in the seconds of the run.
    const std::string log = daemon.log();
    const std::string html = detector.report("faults");
    for (const char* text : {"BDM 7: its times moved by", "BDM 12: its photopeak moved by",
                             "BDM 3: DU 2 does not count", "BDM 5: crystal 777 counts"}) {
        INFO(text);
        CHECK(log.find(std::string("degraded: ") + text) != std::string::npos);
        CHECK(html.find(text) != std::string::npos);
    }
    CHECK(html.find("BDM 3: DU 2 does not count, from ") != std::string::npos);
    CHECK(html.find("<caption>BDMs") != std::string::npos);
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("what has moved since an earlier run differs from the reference", "[e2e][status]") {
    if (!reports_possible()) return;
    Detector detector;
    {
        Daemon daemon(detector.site);
        daemon.start("yesterday");
        detector.simulate({"--to", daemon.address(), "--duration-s", "4"});
        daemon.stop();
        CHECK(daemon.terminate() == 0);
    }
    detector.site.configure({{"detector_reference", "data/yesterday"}});
    Daemon daemon(detector.site);
    CHECK(daemon.log().find("data/yesterday") != std::string::npos);
    daemon.start("today");
    detector.simulate({"--to", daemon.address(), "--duration-s", "4", "--seed", "2", "--clock-jump",
                       "7@0:-" + detector.nanosecond(), "--gain-step", "12@0:-3"});
    std::map<std::string, std::string> reasons;
    CHECK(daemon.until([&](const json& s) {
        reasons = reasons_of(s);
        return reasons.size() == 2;
    }));
    const std::string end = " from the reference since 1\\.0 s";
    CHECK(number_in(reasons["detector_time_off"], "BDM 7: its times differ by (-[0-9.]+) ns" + end) ==
          Approx(-1).margin(0.2));
    CHECK(number_in(reasons["detector_gain_off"], "BDM 12: its photopeak differs by (-[0-9.]+) %" + end) ==
          Approx(-3).margin(0.6));
    CHECK(daemon.log().find("degraded: BDM 7: its times differ by") != std::string::npos);
    daemon.stop();
    const std::string html = detector.report("today");
    CHECK(html.find("BDM 7: its times differ by") != std::string::npos);
    CHECK(html.find("BDM 12: its photopeak differs by") != std::string::npos);
    CHECK(html.find("mean dt, ns, reference") != std::string::npos);
    CHECK(daemon.terminate() == 0);

    // A run of other conditions, and one that does not exist.
    const auto refused = [&](const json& patch) {
        detector.site.configure(patch);
        const Outcome checked =
            run_program(PETACQD_PROGRAM, {"--check", "--config", detector.site.configuration()});
        CHECK(checked.status == 78);
        return checked.err;
    };
    CHECK(refused({{"detector_reference", "data/yesterday"}, {"coincidence", {{"window_ticks", 300}}}})
              .find("/coincidence/window_ticks = 320, expected 300") != std::string::npos);
    CHECK(refused({{"detector_reference", "data/none"}}).find("/detector_reference: ") != std::string::npos);
    json scanner = json::parse(read_file(detector.site.scanner()));
    scanner["tick_ps"] = 20;
    std::ofstream(detector.site.scanner()) << scanner;
    CHECK(refused({{"detector_reference", "data/yesterday"}})
              .find("of another scanner: its tick_ps is 15.625") != std::string::npos);
}

TEST_CASE("a source that moves in all directions is no fault of the detector", "[e2e]") {
    if (!reports_possible()) return;
    const Detector detector;
    const std::string capture = (detector.site.directory() / "moving.pcap").string();
    simulate(detector.site,
             {"--sources", "24", "--point", "5,20,15,0.1", "--cycle", "30", "--motion", "y,-10",
              "--bed-steps", "-6,5", "--half-life-s", "30", "--duration-s", "30", "--write", capture});
    const Outcome replayed = run_program(
        PETACQD_PROGRAM, {"--config", detector.site.configuration(), "--replay", capture, "--run", "r"});
    INFO(replayed.err);
    REQUIRE(replayed.status == 0);
    CHECK(detector.report("r").find("No fault was found.") != std::string::npos);
}

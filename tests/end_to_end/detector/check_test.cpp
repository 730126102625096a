// petcal check: what moved between two runs of a daily source is named, and nothing else.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "config/spectra.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tools/petsim/detector/make_detector.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

/// A ring of twelve modules of 40 crystals, each a source of its own, with a true detector and the
/// calibration that fits it.
class Clinic {
  public:
    Clinic() : site_(json{{"spectra", {{"enabled", true}}}}) {
        json scanner = json::parse(read_file(site_.scanner()));
        scanner["geometry"].merge_patch({{"modules", {{"y", 2}, {"z", 1}}},
                                         {"blocks", {{"y", 1}, {"z", 2}}},
                                         {"bdm_count", 12},
                                         {"du_count", 2}});
        scanner["dimensions"]["ring_radius_mm"] = 18;  // many prompts
        scanner["sources"] = json::array();
        for (int bdm = 0; bdm < 12; ++bdm)
            scanner["sources"].push_back({{"id", bdm}, {"bdms", {bdm}}});
        write_file(site_.scanner(), scanner.dump());
        scanner_ = config::load_scanner(site_.scanner());
        sim::DetectorModel model;
        model.seed = 2;
        model.efficiency_spread = 0.1;
        model.dead = 0.005;
        detector_ = sim::make_detector(scanner_, model);
        config::save_calibration(site_.calibration(), geometry(), sim::calibration_of(scanner_, detector_));
    }

    [[nodiscard]] const Site& site() const { return site_; }
    [[nodiscard]] const config::Geometry& geometry() const { return scanner_.geometry; }
    sim::Detector& detector() { return detector_; }
    [[nodiscard]] std::string file(const std::string& name) const {
        return (site_.directory() / name).string();
    }

    void configure(json patch) {
        patch["spectra"] = {{"enabled", true}};
        site_.configure(patch);
    }

    /// A run of a phantom, through a capture.
    void take(const std::string& run, const std::string& cylinder, const std::vector<std::string>& more = {},
              const std::string& seconds = "1") const {
        sim::save_detector(file("detector.h5"), geometry(), detector_);
        std::vector<std::string> arguments{
            "--crystals",        "surface",    "--scanner",         site_.scanner(), "--calibration",
            site_.calibration(), "--detector", file("detector.h5"), "--cylinder",    cylinder,
            "--duration-s",      seconds,      "--quiet",           "--write",       file(run + ".pcap")};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const Outcome simulated = run_program(PETSIM_PROGRAM, arguments);
        INFO(simulated.err);
        REQUIRE(simulated.status == 0);
        const Outcome replayed = run_program(PETACQD_PROGRAM, {"--config", site_.configuration(), "--replay",
                                                               file(run + ".pcap"), "--run", run});
        INFO(replayed.err);
        // 65: a board that is out of step makes the data bad.
        REQUIRE((replayed.status == 0 || replayed.status == 65));
    }

    [[nodiscard]] Outcome check(const std::string& run, const std::vector<std::string>& more = {},
                                const std::string& reference = "reference") const {
        std::vector<std::string> arguments{"check", site_.run(run).string()};
        if (!reference.empty())
            arguments.insert(arguments.end(), {"--reference", site_.run(reference).string()});
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_program(PETCAL_PROGRAM, arguments);
    }

  private:
    Site site_;
    config::Scanner scanner_;
    sim::Detector detector_;
};

/// Subject and module of each finding, with its text.
std::map<std::string, std::string> texts_of(const json& document) {
    std::map<std::string, std::string> texts;
    for (const json& f : document["findings"])
        texts[f["subject"].get<std::string>() + " " +
              (f["bdm"].is_null() ? "all" : std::to_string(f["bdm"].get<int>()))] = f["text"];
    return texts;
}

std::set<int> modules_of(const json& document) {
    std::set<int> modules;
    for (const json& f : document["findings"])
        modules.insert(f["bdm"].is_null() ? -1 : f["bdm"].get<int>());
    return modules;
}

/// The phantom with this activity.
std::string activity(const std::string& MBq) {  // NOLINT(readability-identifier-naming)
    return "0,0,0,8,14," + MBq;
}

}  // namespace

TEST_CASE("petcal check names what has moved since the reference, and nothing else", "[e2e][check]") {
    Clinic clinic;
    clinic.take("reference", activity("2"));
    clinic.take("next", activity("1"), {"--seed", "2"});
    const Outcome same = clinic.check("next", {"--report", clinic.file("next.html")});
    INFO(same.out << same.err);
    CHECK(same.status == 0);
    CHECK(contains(same.out, "verdict    pass"));
    CHECK(contains(read_file(clinic.file("next.html")), "Pass: nothing has changed."));

    const config::Geometry& g = clinic.geometry();
    for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local)
        clinic.detector().crystals[g.crystal(10, 1, local)].spot_x += 2.5F;
    const std::string noisy = std::to_string(g.crystal(9, 0, 7));
    clinic.take("moved", activity("1.7"),
                {"--seed", "3", "--clock-jump", "5@0:64", "--gain-step", "2@0:-3", "--silent-unit",
                 "7.1@0-100", "--noisy-crystal", noisy + "@0:9000"});
    const Outcome moved = clinic.check("moved", {"--json", "--report", clinic.file("moved.html")});
    INFO(moved.out << moved.err);
    CHECK(moved.status == 1);
    const json document = json::parse(moved.out);
    CHECK(document["verdict"] == "fail");
    CHECK(modules_of(document) == std::set<int>{2, 5, 7, 9, 10});
    auto texts = texts_of(document);
    CHECK(texts["times 5"].starts_with("BDM 5: its times differ by +"));
    CHECK(document["modules"][5]["time_ns"].get<double>() == Approx(1).margin(0.08));
    CHECK(texts["photopeak 2"].starts_with("BDM 2: its photopeak differs by -"));
    CHECK(document["modules"][2]["photopeak_percent"].get<double>() == Approx(-3).margin(0.5));
    CHECK(texts["singles 7"] == "BDM 7: DU 1 does not count");
    CHECK(contains(texts["singles 9"], "crystal " + noisy));
    CHECK(texts["spots 10"].starts_with("BDM 10, DU 1: its spots moved by "));
    const std::string page = read_file(clinic.file("moved.html"));
    CHECK(contains(page, "BDMs to look at: 2, 5, 7, 9, 10."));
    CHECK(contains(page, "BDM 5: its times differ by +"));
    CHECK(contains(page, "BDM 10, DU 1: reference"));
    CHECK(contains(page, "data:image/png;base64,iVBORw0KGgo"));
}

TEST_CASE("petcal check finds the modules whose clocks have moved among more than seconds keep the pairs of",
          "[e2e][check]") {
    // 264 modules; the seconds keep pairs by two modules.
    const json scanner = json::parse(R"({
        "name": "many", "tick_ps": 10, "position_size": 32, "frame_version": 2,
        "module_types": [{"name": "m", "layers": [
            {"y": {"count": 2, "pitch_mm": 3}, "z": {"count": 2, "pitch_mm": 3}, "length_mm": 15, "material": "LYSO"}]}],
        "modules": [{"type": "m", "ring": {"count": 44, "radius_mm": 44}, "along_z": {"count": 6, "pitch_mm": 6.2}}],
        "good_pairs": {"min_angle_deg": 60}})");
    const TemporaryDirectory directory;
    write_file(directory / "many.scanner.json", scanner.dump());
    const Site site(json{{"spectra", {{"enabled", true}}},
                         {"sources", {{"accept_any", true}}},
                         {"receive", {{"batch_count", 600}}},
                         {"coincidence", {{"window_ticks", 600}, {"min_module_difference", nullptr}}}},
                    directory / "many.scanner.json");
    const auto take = [&](const std::string& run, const std::vector<std::string>& more) {
        const std::string capture = (site.directory() / (run + ".pcap")).string();
        std::vector<std::string> arguments{
            "--crystals",   "surface", "--scanner",  site.scanner(),   "--calibration", site.calibration(),
            "--efficiency", "1",       "--cylinder", "0,0,0,8,30,0.6", "--sources",     "264",
            "--duration-s", "1",       "--quiet",    "--write",        capture};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const Outcome simulated = run_program(PETSIM_PROGRAM, arguments);
        INFO(simulated.err);
        REQUIRE(simulated.status == 0);
        const Outcome replayed = run_program(
            PETACQD_PROGRAM, {"--config", site.configuration(), "--replay", capture, "--run", run});
        INFO(replayed.err);
        REQUIRE((replayed.status == 0 || replayed.status == 65));
    };
    take("reference", {"--seed", "3"});
    take("next", {"--seed", "4", "--clock-jump", "101@0:250", "--clock-jump", "200@0:-1000"});
    const Outcome checked =
        run_program(PETCAL_PROGRAM, {"check", site.run("next").string(), "--reference",
                                     site.run("reference").string(), "--time-ns", "1", "--json"});
    INFO(checked.out.substr(0, 2000) << checked.err);
    REQUIRE(checked.status == 1);
    const json document = json::parse(checked.out);
    auto texts = texts_of(document);
    CHECK(texts.size() == 2);
    CHECK(texts["times 101"].starts_with("BDM 101: its times differ by +"));
    CHECK(texts["prompts 200"].starts_with("BDM 200: its prompts per single differ by -"));
    CHECK(document["modules"][101]["time_ns"].get<double>() == Approx(2.5).margin(0.25));
}

TEST_CASE("petcal check refuses runs that cannot be used or compared", "[e2e][check]") {
    const Clinic clinic;
    clinic.take("reference", activity("1.5"));
    clinic.take("weak", activity("0.1"));
    const auto refused = [&](const std::string& run, const std::string& why, int status = 78,
                             const std::string& reference = "reference") {
        const Outcome outcome = clinic.check(run, {}, reference);
        INFO(outcome.out << outcome.err);
        CHECK(outcome.status == status);
        CHECK(contains(outcome.err, why));
        CHECK(outcome.out.empty());
    };
    /// A copy of the reference whose run.json is changed.
    const auto copy = [&](const std::string& run, const json& patch) {
        std::filesystem::copy(clinic.site().run("reference"), clinic.site().run(run));
        json content = clinic.site().run_json(run);
        content.merge_patch(patch);
        write_file(clinic.site().run(run) / "run.json", content.dump());
        return clinic.site().run(run);
    };
    refused("weak", "too few counts for the times of BDMs: expected that a change by 0.1 ns");
    refused("none", "none: expected the directory of a run");
    refused("reference", "expected the directory of a run", 78, "none");
    refused("reference", "has no detector_reference; expected --reference", 78, "");
    copy("cut", {{"state", "interrupted"}});
    refused("cut", "cut: expected a run whose state is complete, found interrupted");
    copy("other", {{"coverage", {{"origin", {{"calibration_sha256", "abc"}}}}}});
    refused("reference", "taken with another calibration: abc, expected", 78, "other");
    copy("scanner", {{"scanner", {{"name", "large"}}}});
    refused("reference", "a run of another scanner: its name is \"large\", expected \"small\"", 78,
            "scanner");
    copy("window", {{"coverage", {{"rules", {{"coincidence", {{"window_ticks", 200}}}}}}}});
    refused("reference", "window_ticks = 200, expected 320", 78, "window");
    const auto source = [](const char* nuclide) {
        return json{{"nuclide", nuclide}, {"half_life_s", 1000}, {"branching_ratio", 1}};
    };
    copy("F-18", {{"coverage", {{"activity", source("F-18")}}}});
    copy("Ge-68", {{"coverage", {{"activity", source("Ge-68")}}}});
    refused("F-18", "taken with another nuclide: Ge-68, expected F-18", 78, "Ge-68");
    std::filesystem::remove(copy("plain", json::object()) / "spectra.h5");
    refused("plain", "expected spectra.h5; set spectra.enabled");
    std::filesystem::resize_file(copy("short", json::object()) / "spectra.h5", 5000);
    refused("short", "spectra.h5");
    refused("reference", "spectra.h5", 78, "short");
    std::filesystem::remove(copy("timeless", json::object()) / "seconds.plm");
    refused("timeless", "seconds.plm");
    write_file(copy("empty", json::object()) / "run.json", "");
    refused("empty", "run.json");
    write_file(copy("list", json::object()) / "run.json", "[]");
    refused("list", "expected a run whose state is complete, found none");
    for (const char* limit : {"0", "-1", "nan", "inf", "x"})
        CHECK(clinic.check("reference", {"--time-ns", limit}).status == 64);
    CHECK(clinic.check("reference", {"--time-ns", "0.5", "--report", clinic.file("no/page.html")}).status ==
          74);
    // A run is as it was itself.
    const Outcome itself = clinic.check("reference", {"--time-ns", "0.5"});
    INFO(itself.err);
    CHECK(itself.status == 0);
}

TEST_CASE("each fault of a detector is named alone", "[e2e][check][.long]") {
    const Clinic clinic;
    clinic.take("reference", activity("3"));
    const auto found = [&](const std::string& run, const std::vector<std::string>& faults,
                           const std::string& phantom = activity("2")) {
        std::vector<std::string> arguments{"--seed", "5"};
        arguments.insert(arguments.end(), faults.begin(), faults.end());
        clinic.take(run, phantom, arguments);
        const Outcome outcome = clinic.check(run, {"--json"});
        INFO(run << outcome.out << outcome.err);
        CHECK(outcome.status == (faults.empty() ? 0 : 1));
        return texts_of(json::parse(outcome.out));
    };
    // Close to the edge of the window, which is 5 ns, and beyond it.
    auto texts = found("late", {"--clock-jump", "5@0:256"});
    CHECK(texts.size() == 1);
    CHECK(texts["times 5"].starts_with("BDM 5: its times differ by +"));
    texts = found("lost", {"--clock-jump", "5@0:-450"});
    CHECK(texts.size() == 1);
    CHECK(texts["prompts 5"].starts_with("BDM 5: its prompts per single differ by -"));
    // A board with a quarter of the ring.
    texts = found("board", {"--clock-jump", "3@0:128", "--clock-jump", "4@0:128", "--clock-jump", "5@0:128"});
    CHECK(texts.size() == 3);
    for (const char* module : {"3", "4", "5"})
        CHECK(texts[std::string("times ") + module].starts_with(std::string("BDM ") + module +
                                                                ": its times differ by +"));
    texts = found("lost-board",
                  {"--clock-jump", "3@0:450", "--clock-jump", "4@0:450", "--clock-jump", "5@0:450"});
    CHECK(texts.size() == 3);
    CHECK((texts.contains("prompts 3") && texts.contains("prompts 4") && texts.contains("prompts 5")));
    texts = found("high", {"--gain-step", "8@0:2"});
    CHECK(texts.size() == 1);
    CHECK(texts["photopeak 8"].starts_with("BDM 8: its photopeak differs by +"));
    std::vector<std::string> warm;
    for (int bdm = 0; bdm < 12; ++bdm)
        warm.insert(warm.end(), {"--gain-step", std::to_string(bdm) + "@0:-2"});
    texts = found("warm", warm);
    CHECK(texts.size() == 1);
    CHECK(texts["photopeak all"].starts_with("all BDMs: their photopeaks differ by -"));
    texts = found("dark", {"--silent-unit", "8.0@0-100", "--silent-unit", "8.1@0-100"});
    CHECK(texts.size() == 1);
    CHECK(texts["singles 8"] ==
          "BDM 8: 2 DUs, the first DU 0, do not count; 100 % of its data did not "
          "arrive in the run");
    // Nothing, at other activities and a little off the place.
    CHECK(found("weak", {}, activity("1")).empty());
    CHECK(found("strong", {}, activity("10")).empty());
    CHECK(found("aside", {}, "1,0,1,8,14,2").empty());
}

TEST_CASE("the daily check takes a run, checks it and keeps the page", "[e2e][check]") {
    Clinic clinic;
    clinic.take("reference", activity("1"), {}, "3");  // the daemon wants two whole seconds
    clinic.configure({{"detector_reference", "data/reference"}});
    Daemon daemon(clinic.site());
    const auto environment = [&](const std::string& socket) {
        const std::string programs = std::filesystem::path(PETCTL_PROGRAM).parent_path();
        return std::vector<std::string>{"PATH=" + programs + ":" + std::getenv("PATH"),
                                        "PETACQ_SOCKET=" + socket};
    };
    const std::string script = std::string(PETACQ_SOURCE_DIR) + "/systemd/daily-check";
    const std::vector<std::string> arguments{clinic.file("data"), "1"};
    Process boards(PETSIM_PROGRAM,
                   petsim_arguments(clinic.site(), {"--detector", clinic.file("detector.h5"), "--cylinder",
                                                    activity("1"), "--duration-s", "60", "--seed", "7",
                                                    "--silent-unit", "7.1@0-100", "--to", daemon.address()}),
                   clinic.site().directory() / "boards");
    REQUIRE(daemon.until([](const json& s) { return s["total"]["frames"]["accepted"] > 10'000; }));
    const Outcome checked =
        run_program(script, arguments, {.environment = environment(clinic.site().socket())});
    boards.signal(SIGKILL);
    INFO(checked.out << checked.err);
    CHECK(checked.status == 1);  // also with the few counts that come through on a busy machine
    CHECK(contains(checked.out, "BDM 7: DU 1 does not count"));
    std::size_t pages = 0;
    for (const auto& run : std::filesystem::directory_iterator(clinic.file("data")))
        if (run.path().filename().string().starts_with("daily-") &&
            std::filesystem::exists(run.path() / "check.html"))
            ++pages;
    CHECK(pages == 1);
    // A run in progress is not disturbed.
    daemon.start("patient");
    const Outcome busy = run_program(script, arguments, {.environment = environment(clinic.site().socket())});
    CHECK(busy.status == 1);
    CHECK(daemon.status()["run"]["id"] == "patient");
    daemon.stop();
    CHECK(run_program(script, arguments, {.environment = environment(clinic.file("none"))}).status != 0);
    CHECK(run_program(script, {clinic.file("data")}).status == 64);
    CHECK(daemon.terminate() == 0);
}

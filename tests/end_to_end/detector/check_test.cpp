// petcal check: what moved between two runs of a daily source is named, and nothing else.
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "config/scanner.hpp"
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
    explicit Clinic(const json& patch = json::object()) : site_(json{{"spectra", {{"enabled", true}}}}) {
        json scanner = json::parse(read_file(site_.scanner()));
        scanner["geometry"].merge_patch({{"modules", {{"y", 2}, {"z", 1}}},
                                         {"blocks", {{"y", 2}, {"z", 1}}},
                                         {"bdm_count", 12},
                                         {"du_count", 2}});
        scanner["sources"] = json::array();
        for (int bdm = 0; bdm < 12; ++bdm)
            scanner["sources"].push_back({{"id", bdm}, {"bdms", {bdm}}});
        scanner.merge_patch(patch);
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

    /// A run of a phantom, through a capture.
    void take(const std::string& run, const std::vector<std::string>& more,
              const std::string& cylinder = "0,0,0,20,20,3") const {
        sim::save_detector(file("detector.h5"), geometry(), detector_);
        std::vector<std::string> arguments{"--detector", file("detector.h5"), "--cylinder",
                                           cylinder,     "--duration-s",      "1",
                                           "--write",    file("stream.pcap")};
        arguments.insert(arguments.end(), more.begin(), more.end());
        simulate(site_, arguments);
        const Outcome replayed = run_program(PETACQD_PROGRAM, {"--config", site_.configuration(), "--replay",
                                                               file("stream.pcap"), "--run", run});
        INFO(replayed.err);
        REQUIRE(replayed.status == 0);
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

/// What is named: subject, module, unit (-1: the whole module) and how many crystals.
using Named = std::set<std::tuple<std::string, int, int, int>>;

Named named_in(const json& document) {
    Named named;
    for (const json& f : document["findings"])
        named.emplace(f["subject"], f["bdm"].is_null() ? -1 : f["bdm"].get<int>(),
                      f["du"].is_null() ? -1 : f["du"].get<int>(), f["crystals"].size());
    return named;
}

}  // namespace

TEST_CASE("petcal check names what has moved since the reference", "[e2e][check]") {
    Clinic clinic;
    clinic.take("reference", {});
    SECTION("nothing, with half of the activity and other seeds") {
        clinic.take("next", {"--seed", "2"}, "0,0,0,20,20,1.5");
        const Outcome same = clinic.check("next", {"--report", clinic.file("next.html")});
        INFO(same.out << same.err);
        CHECK(same.status == 0);
        CHECK(contains(same.out, "verdict    pass"));
        const std::string page = read_file(clinic.file("next.html"));
        CHECK(contains(page, "Pass: nothing has changed."));
        CHECK(contains(page, "data:image/png;base64,"));
    }
    SECTION("clock, gain, spots, a dead unit and noise") {
        const config::Geometry& g = clinic.geometry();
        for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local)
            clinic.detector().crystals[g.crystal(10, 1, local)].spot_x += 2.5;
        clinic.take("moved",
                    {"--seed", "3", "--clock-jump", "5@0:64", "--gain-step", "2@0:-3", "--silent-unit",
                     "7.1@0-100", "--noisy-crystal", std::to_string(g.crystal(9, 0, 7)) + "@0:9000"});
        const Outcome moved = clinic.check("moved", {"--json", "--report", clinic.file("moved.html")});
        INFO(moved.out << moved.err);
        CHECK(moved.status == 1);
        const json document = json::parse(moved.out);
        CHECK(document["verdict"] == "fail");
        std::map<std::string, std::string> texts;
        std::set<int> modules;
        for (const json& f : document["findings"]) {
            texts[f["subject"].get<std::string>() + " " + std::to_string(f["bdm"].get<int>())] = f["text"];
            modules.insert(f["bdm"].get<int>());
        }
        CHECK(modules == std::set<int>{2, 5, 7, 9, 10});
        CHECK(texts["times 5"].starts_with("module 5: its times differ by +1.0"));
        CHECK(texts["photopeak 2"].starts_with("module 2: its photopeak differs by -"));
        CHECK(texts["singles 7"] == "module 7: detector unit 1 does not count");
        CHECK(contains(texts["singles 9"], "crystal " + std::to_string(g.crystal(9, 0, 7))));
        CHECK(texts["spots 10"].starts_with("module 10, unit 1: its spots moved by "));
        CHECK(document["modules"][5]["time_ns"].get<double>() == Approx(1).margin(0.05));
        CHECK(document["modules"][2]["photopeak_percent"].get<double>() == Approx(-3).margin(0.2));
        const std::string page = read_file(clinic.file("moved.html"));
        CHECK(contains(page, "Modules to look at: 2, 5, 7, 9, 10."));
        CHECK(contains(page, "module 5: its times differ by +1.0"));
        CHECK(contains(page, "module 10, unit 1: reference"));
    }
}

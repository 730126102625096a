// petcal derive normalisation as its users see it, from runs of a simulated scanner with uneven crystals.
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/normalisation/normalisation.hpp"
#include "tools/petcal/results/derived_normalisation.hpp"
#include "tools/petsim/detector/detector.hpp"

namespace petacq::test {

namespace {

using nlohmann::json;

/// A directory with a scanner, its true detector, and runs of a cylinder of radius 15 mm.
class Scans {
  public:
    Scans() {
        const std::filesystem::path examples = PETACQ_SOURCE_DIR "/config/examples";
        std::filesystem::copy_file(examples / "small.scanner.json", dir / "s.json");
        json c = json::parse(read_file(examples / "mouse.json"));
        c["scanner"] = "s.json";
        c["calibration"] = "c.h5";
        c["coincidence"]["multiples_policy"] = "RemoveMultiples";
        c["pipeline"]["backend"] = "cpu";
        c["receive"].update({{"batch_count", 32}, {"batch_bytes", 262144}, {"lock_memory", false}});
        write_file(dir / "petacqd.json", c.dump());
        std::filesystem::create_directory(dir / "data");
        good(PETSIM_PROGRAM,
             "make-detector --scanner s.json --output det.h5 --calibration c.h5 --efficiency-spread 0.14 "
             "--spot-sigma 0 --spot-jitter 0 --time-spread-ps 0");
    }
    /// Simulates and acquires a run.
    void acquire(const std::string& run, const std::string& seconds) const {
        good(PETSIM_PROGRAM,
             "--crystals surface --scanner s.json --detector det.h5 --scatter 0 --cylinder 0,0,0,15,60,4 "
             "--efficiency 0.6 --silent-unit 7.2@0-100 --threads 2 --quiet --write " +
                 run + ".pcap --duration-s " + seconds);
        good(PETACQD_PROGRAM, "--config petacqd.json --replay " + run + ".pcap --run " + run);
    }
    /// The same run with another run.json, and without what was counted in each second.
    void copy(const std::string& run, const std::string& to, const json& patch, bool with_seconds) const {
        std::filesystem::copy(dir / "data" / run, dir / "data" / to);
        json content = json::parse(read_file(dir / "data" / to / "run.json"));
        content.merge_patch(patch);
        write_file(dir / "data" / to / "run.json", content.dump());
        if (!with_seconds) std::filesystem::remove(dir / "data" / to / "seconds.plm");
    }
    [[nodiscard]] Outcome derive(const std::string& run, const std::string& more = "") const {
        return in_directory(PETCAL_PROGRAM,
                            "derive normalisation --scanner s.json --attenuation-per-cm 0 --depth-mm 0 "
                            "-o n.h5 --force --run data/" +
                                run + " " + (more.empty() ? cylinder : more));
    }
    [[nodiscard]] Outcome in_directory(const char* program, const std::string& arguments) const {
        return shell("cd" + quoted(dir.path()) + "&&" + quoted(program) + arguments);
    }
    [[nodiscard]] config::Scanner scanner() const { return config::load_scanner(dir / "s.json"); }

    static constexpr const char* cylinder = "--cylinder 0,0,0,15,60 ";
    TemporaryDirectory dir;

  private:
    void good(const char* program, const std::string& arguments) const {
        const Outcome outcome = in_directory(program, arguments);
        INFO(outcome.out);
        REQUIRE(outcome.status == 0);
    }
};

/// Against the truth, with one unit dead; `counts`: per crystal.
void check_efficiencies(const Scans& scans, const std::string& file, double counts) {
    const config::Geometry g = scans.scanner().geometry;
    const auto found = normalisation::load(scans.dir / file, g);
    const sim::Detector detector = sim::load_detector(scans.dir / "det.h5", g);
    std::set<std::uint32_t> dead;
    for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local)
        dead.insert(g.crystal(7, 2, local));
    Moments ratio;
    Moments mean;
    for (std::uint32_t i = 0; i < g.crystal_count(); ++i) {
        if (found.efficiency[i] == 0) {
            CHECK(dead.erase(i) == 1);
            continue;
        }
        mean.add(found.efficiency[i]);
        ratio.add(found.efficiency[i] / double{detector.crystals[i].efficiency});
    }
    CHECK(dead.empty());
    CHECK(mean.mean() == Approx(1).margin(0.001));
    CHECK(counts > 120);
    CHECK(ratio.sigma() / ratio.mean() < 1.2 / std::sqrt(counts));
    CHECK(ratio.sigma() / ratio.mean() > 0.8 / std::sqrt(counts));
}

}  // namespace

TEST_CASE("derive normalisation: efficiencies to 1.2 / sqrt(N) and a dead unit, from real runs") {
    const Scans scans;
    scans.acquire("scan", "1");
    const Outcome derived = scans.derive("scan", std::string(Scans::cylinder) + "--report r.html");
    CAPTURE(derived.out);
    REQUIRE(derived.status == 0);
    CHECK(lacking(derived.out, {"from the singles of each second", "dead units          1", "BDM 7, DU 2",
                                "other dead crystals 0", "unseen crystals     0",
                                " per crystal (median, net), lowest ", "few counts: 3 % need "}) == "");
    const auto at = derived.out.find("counts");
    REQUIRE(at != std::string::npos);
    check_efficiencies(scans, "n.h5", std::stod(derived.out.substr(at + 6)));

    {  // what it was made from
        const Outcome shown = scans.in_directory(PETCAL_PROGRAM, "inspect --scanner s.json --json n.h5");
        const json figures = json::parse(shown.out);
        const json run = json::parse(read_file(scans.dir / "data/scan/run.json"));
        CHECK(figures["origin"]["run"] == "scan");
        CHECK(figures["origin"]["run_start_utc"] == run["start_utc"]);
        CHECK(figures["origin"]["calibration_sha256"] == config::sha256_of_file(scans.dir / "c.h5"));
        CHECK(figures["origin"]["scanner"] == "small");
        CHECK(figures["origin"]["source"] == "cylinder 0,0,0,15,60 mm");
        CHECK(figures["dead_units"] == json::parse(R"([{"bdm": 7, "du": 2}])"));
        CHECK(figures["efficiency"]["spread"].get<double>() == Approx(0.16).margin(0.02));
        CHECK(figures["activity_factor"].is_null());
        CHECK(lacking(scans.in_directory(PETCAL_PROGRAM, "inspect --scanner s.json n.h5").out,
                      {"activity_factor     none", "BDM 7, DU 2", "run_start_utc"}) == "");
    }
    {  // a cylinder that is not where it was said to be
        const Outcome off = scans.derive("scan", "--cylinder 0.3,0.4,0,15,60");
        CAPTURE(off.out);
        CHECK(off.status == 78);
        CHECK(lacking(off.out, {"the source is not where it was said to be: its prompts come from around",
                                "--cylinder says 0.3, 0.4, 0: 0.", "mm off across the axis"}) == "");
    }
    {  // the report has pictures, and loads nothing
        const std::string page = read_file(scans.dir / "r.html");
        CHECK(lacking(page, {"data:image/png;base64,iVBORw0KGgo", "BDM 7, DU 2", "</html>"}) == "");
        CHECK(page.find("http") == std::string::npos);
    }
    {  // delayeds serve where the seconds are gone; the result hardly differs
        std::filesystem::rename(scans.dir / "n.h5", scans.dir / "seconds.h5");
        scans.copy("scan", "delayeds", json::object(), false);
        const Outcome from_delayeds = scans.derive("delayeds");
        CAPTURE(from_delayeds.out);
        REQUIRE(from_delayeds.status == 0);
        CHECK(lacking(from_delayeds.out, {"from delayeds of weight", "no seconds.plm"}) == "");
        const Outcome compared =
            scans.in_directory(PETCAL_PROGRAM, "compare --scanner s.json --json seconds.h5 n.h5");
        const json difference = json::parse(compared.out);
        CHECK(difference["efficiency"]["rms_percent"].get<double>() > 0);
        CHECK(difference["efficiency"]["rms_percent"].get<double>() < 2);
        CHECK(difference["dead_only_in_a"] == 0);
        CHECK(lacking(scans.in_directory(PETCAL_PROGRAM, "compare --scanner s.json seconds.h5 n.h5").out,
                      {"efficiency      B to A: rms", "dead            only in A: 0, only in B: 0"}) == "");
    }
}

TEST_CASE("derive normalisation: counts, and how many more the efficiencies need") {
    const config::Scanner scanner = small_scanner();
    petcal::DerivedNormalisation derived;
    derived.prompts = derived.used = 1000;
    derived.fit.crystals.median_counts = 310;
    derived.fit.crystals.lowest_counts = 120;
    derived.normalisation.efficiency.assign(5, 1);
    derived.fit.crystals.error.assign(5, 0.06);
    CHECK(lacking(petcal::figures_text(scanner, derived),
                  {"counts              310 per crystal (median, net), lowest 120\n",
                   "few counts: 3 % need 4.0 times as many prompts, so measure longer\n"}) == "");
    derived.fit.crystals.error.assign(5, 0.03);
    CHECK_FALSE(contains(petcal::figures_text(scanner, derived), "few counts"));
}

TEST_CASE("derive normalisation: insufficient or wrong data are refused, and nothing is written") {
    const Scans scans;
    scans.acquire("short", "0.2");
    const auto refused = [&](const Outcome& outcome, const std::vector<std::string>& with, int status = 78) {
        CAPTURE(outcome.out);
        CHECK(outcome.status == status);
        for (const std::string& part : with)
            CHECK_THAT(outcome.out, contains(part));
        CHECK(!std::filesystem::exists(scans.dir / "n.h5"));
    };
    refused(scans.derive("short"), {"net coincidences per crystal; expected at least 100"});
    refused(scans.derive("short", "--cylinder 20,0,0,6,40"),
            {"not where it was said to be", "--cylinder says 20, 0, 0: "});
    refused(scans.derive("short", "--cylinder 0,0,0,2,60"),
            {"lie on lines through the source", "check --cylinder"});
    refused(scans.derive("short", "--cylinder 0,0,300,6,40"), {"no line between two crystals meets"});
    refused(scans.derive("short", "--cylinder 20,0,0,15,40"), {"reaches 35 mm from the axis"});
    refused(scans.derive("short", "--cylinder 0,0,0,-1,40"), {"a radius and a length"});
    refused(scans.derive("short", "--cylinder 0,0,nan,10,40"), {"finite number"}, 64);
    refused(scans.derive("short", "--cylinder 0,0,0,10"), {"--cylinder"}, 64);
    refused(scans.derive("none"), {"none"});

    scans.copy("short", "other", json{{"scanner", {{"dimensions", {{"ring_radius_mm", 33}}}}}}, true);
    refused(scans.derive("other"), {"taken with another scanner: expected dimensions", "33"});
    scans.copy("short", "unknown", json{{"expected_randoms", nullptr}}, false);
    refused(scans.derive("unknown"), {"nothing tells its randoms", "has no seconds.plm"});
    std::filesystem::remove(scans.dir / "data/short/coincidences.plm");
    refused(scans.derive("short"), {"coincidences"});
    const auto with = [&](const std::string& option) {
        return scans.in_directory(PETCAL_PROGRAM,
                                  "derive normalisation --scanner s.json -o n.h5 --force --run data/short " +
                                      option + Scans::cylinder);
    };
    refused(with("--depth-mm 7 "), {"--depth-mm: expected 0 to half of a crystal, 6 mm"});
    refused(with("--attenuation-per-cm 2 "), {"--attenuation-per-cm: expected 0 to 1"});
}

}  // namespace petacq::test

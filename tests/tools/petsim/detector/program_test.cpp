// petsim make-detector and petsim --detector as their users see them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/calibration.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petsim/detector/make_detector.hpp"

namespace petacq::test {

namespace {

Outcome petsim(const std::string& arguments) {
    return shell(quoted(PETSIM_PROGRAM) + arguments);
}

struct Place {
    TemporaryDirectory dir;
    Place() { write_file(dir / "s.json", config::to_json(small_scanner()).dump()); }
    [[nodiscard]] std::string at(const std::string& name) const { return (dir / name).string(); }
    [[nodiscard]] std::string scanner() const { return "--scanner " + at("s.json") + " "; }
};

}  // namespace

TEST_CASE("petsim make-detector writes what make_detector makes, and the calibration that fits it",
          "[petsim][detector]") {
    const Place p;
    const auto made = petsim("make-detector " + p.scanner() + "--output " + p.at("d.h5") + " --calibration " +
                             p.at("c.h5") +
                             " --seed 5 --spot-sigma 0.3 --spot-jitter 0.1 --crosstalk 0.1 --gain 3"
                             " --gain-spread 0.1 --nonlinearity 0.1 --time-spread-ps 1000 --resolution 0.2"
                             " --resolution-spread 0.1 --efficiency-spread 0.15 --dead 0.1 --noisy 0.05"
                             " --noise-hz 77");
    CHECK(made.out.empty());
    REQUIRE(made.status == 0);
    sim::DetectorModel m;
    m.seed = 5;
    m.spot_sigma = 0.3;
    m.spot_jitter = m.crosstalk = m.gain_spread = m.nonlinearity = m.resolution_spread = m.dead = 0.1;
    m.gain = 3;
    m.time_spread_ps = 1000;
    m.resolution = 0.2;
    m.efficiency_spread = 0.15;
    m.noisy = 0.05;
    m.noise_hz = 77;
    const auto expected = sim::make_detector(small_scanner(), m);
    const auto found = sim::load_detector(p.at("d.h5"), small_scanner().geometry);
    REQUIRE(found.crystals.size() == expected.crystals.size());
    CHECK(found.crosstalk == 0.1);
    CHECK(found.noise_hz == 77);
    for (std::size_t i = 0; i < found.crystals.size(); ++i) {
        const auto& a = found.crystals[i];
        const auto& b = expected.crystals[i];
        REQUIRE(std::tuple(a.spot_x, a.spot_y, a.spot_sigma_x, a.spot_sigma_y, a.gain, a.nonlinearity) ==
                std::tuple(b.spot_x, b.spot_y, b.spot_sigma_x, b.spot_sigma_y, b.gain, b.nonlinearity));
        REQUIRE(std::tuple(a.energy_resolution, a.efficiency, a.time_offset_ps, a.state) ==
                std::tuple(b.energy_resolution, b.efficiency, b.time_offset_ps, b.state));
    }
    const auto calibration = config::load_calibration(p.at("c.h5"), small_scanner().geometry);
    CHECK(calibration.position_table == sim::calibration_of(small_scanner(), expected).position_table);
    const auto wrong = petsim("make-detector " + p.scanner() + "--output " + p.at("e.h5") + " --dead 2");
    CHECK(wrong.status == 64);
    CHECK(contains(wrong.out, "dead: expected 0"));
}

TEST_CASE("petsim with a true detector names it in truth and summary, and needs no calibration",
          "[petsim][detector]") {
    const Place p;
    REQUIRE(petsim("make-detector " + p.scanner() + "--output " + p.at("d.h5")).status == 0);
    const bool nominal = GENERATE(false, true);
    if (nominal) {
        config::save_calibration(p.at("c.h5"), small_scanner().geometry, small_calibration());
    }
    const auto run = petsim(p.scanner() + "--detector " + p.at("d.h5") +
                            (nominal ? " --calibration " + p.at("c.h5") : "") +
                            " --point 0,0,0,2 --duration-s 0.02 --dry-run --dead-time-ticks 1000"
                            " --dead-time-model paralysable --block-pile-up-ns 50 --clock-drift-ps-per-c 3"
                            " --gain-drift-percent-per-c -0.3 --truth " +
                            p.at("t") + " --summary " + p.at("s"));
    INFO(run.out);
    REQUIRE(run.status == 0);
    nlohmann::json description;
    const auto truth = sim::read_truth(p.at("t"), &description);
    const auto summary = nlohmann::json::parse(read_file(p.at("s")));
    CHECK(description["detector"]["sha256"] == config::sha256_of_file(p.at("d.h5")));
    CHECK(description["calibration_sha256"] == (nominal ? config::sha256_of_file(p.at("c.h5")) : ""));
    CHECK(summary["detector"] == description["detector"]);
    for (const auto& options : {description["options"], summary["options"]}) {
        CHECK(options["physics"]["paralysable"] == true);
        CHECK(options["physics"]["block_pile_up_ns"] == 50);
        CHECK(options["physics"]["clock_drift_ps_per_c"] == 3);
        CHECK(options["physics"]["gain_drift_percent_per_c"] == -0.3);
    }
    REQUIRE(truth.size() == summary["total"]["frames"].get<std::size_t>());
    CHECK(truth.front().hits > 0);

    write_file(p.at("bad.h5"), "nothing");
    const auto bad = petsim(p.scanner() + "--detector " + p.at("bad.h5") + " --dry-run");
    CHECK(bad.status == 78);
    CHECK(contains(bad.out, "bad.h5: not an HDF5 file"));
    const auto neither = petsim(p.scanner() + "--dry-run");
    CHECK(neither.status == 64);
    CHECK(contains(neither.out, "--calibration or --detector is required"));
}

TEST_CASE("petsim follows photons if its options say so, and writes their history", "[petsim][photons]") {
    const Place p;
    REQUIRE(
        petsim("make-detector " + p.scanner() + "--output " + p.at("d.h5") + " --calibration " + p.at("c.h5"))
            .status == 0);
    const std::string common =
        p.scanner() + "--calibration " + p.at("c.h5") + " --dry-run --duration-s 0.005";
    const auto description_of = [&](const std::string& arguments) {
        const auto run = petsim(common + arguments + " --truth " + p.at("t"));
        INFO(run.out);
        REQUIRE(run.status == 0);
        nlohmann::json description;
        const auto truth = sim::read_truth(p.at("t"), &description);
        const bool followed =
            std::any_of(truth.begin(), truth.end(), [](const auto& t) { return t.photon != 0; });
        CHECK(followed ==
              (description["options"].contains("object") || description["options"].contains("crystals")));
        return description["options"];
    };
    const std::string cylinder = " --cylinder 0,0,0,10,20,4";
    const auto plain = description_of(cylinder);
    CHECK_FALSE(plain["sources"][0].contains("cold"));
    // Without options, crystals absorb photons as those of the scanner description do.
    CHECK(plain["crystals"] ==
          nlohmann::json{
              {"model", "depth"}, {"attenuation_per_cm", 0.83}, {"photo_share", 0.32}, {"cascade", false}});
    CHECK_FALSE(description_of(cylinder + " --crystals surface").contains("crystals"));
    nlohmann::json of_bgo = to_json(small_scanner());
    of_bgo["dimensions"]["crystal_material"] = "BGO";
    write_file(p.at("s.json"), of_bgo.dump());
    CHECK(description_of(cylinder)["crystals"]["attenuation_per_cm"] == 0.95);
    write_file(p.at("s.json"), to_json(small_scanner()).dump());

    const auto options = description_of(cylinder +
                                        " --cold 5,0,0,2,30 --cold=-5,0,0,1,10 --object 0,1,2,15,30"
                                        " --crystals scatter --crystal-attenuation-per-cm 0.9"
                                        " --photo-share 0.4 --intrinsic-hz 50 --intrinsic-cascade");
    CHECK(options["sources"][0]["cold"][1]["centre_mm"] == nlohmann::json({-5, 0, 0}));
    CHECK(options["object"]["attenuation_per_cm"] == 0.096);
    CHECK(options["object"]["centre_mm"] == nlohmann::json({0, 1, 2}));
    CHECK(options["crystals"] ==
          nlohmann::json{
              {"model", "scatter"}, {"attenuation_per_cm", 0.9}, {"photo_share", 0.4}, {"cascade", true}});
    // The same again from a description of its sources.
    write_file(p.at("sources.json"),
               nlohmann::json{{"sources", options["sources"]}, {"object", options["object"]}}.dump());
    const auto again = description_of(" --source " + p.at("sources.json") + " --crystals depth");
    CHECK(again["sources"] == options["sources"]);
    CHECK(again["object"] == options["object"]);

    const auto refused = [&](const std::string& arguments, const char* what) {
        const auto run = petsim(common + arguments);
        CHECK(run.status == 64);
        CHECK(contains(run.out, what));
    };
    refused(" --cold 0,0,0,1,1", "--cold: there is no --cylinder");
    refused(cylinder + " --cold 0,0,0,1", "--cold");
    refused(cylinder + " --cold 0,0,0,10,20", "cold regions is 0.0; expected at least 0.01");
    refused(" --object 0,0,0,1", "x,y,z,radius,length[,1/cm]");
    refused(" --object 0,0,0,100,1", "ring radius");
    refused(" --source " + p.at("sources.json") + " --object 0,0,0,1,1", "has one, too");
    refused(" --crystals surface --intrinsic-cascade", "--crystals is surface; expected depth or scatter");
    refused(" --crystals deep", "--crystals");
}

}  // namespace petacq::test

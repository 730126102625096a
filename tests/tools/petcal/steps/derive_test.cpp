// petcal derive, apply and compare as their users see them, from spectra of a true detector.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/calibration.hpp"
#include "config/hdf5/table.hpp"
#include "config/make_calibration.hpp"
#include "config/spectra.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/petcal/true_spectra.hpp"
#include "tools/petsim/detector/make_detector.hpp"

namespace petacq::test {

namespace {

/// Two rings of modules with few crystals each.
config::Scanner ring_scanner() {
    config::Scanner s;
    s.name = "<ring>";
    s.tick_ps = 10;
    s.geometry = {3, {1, 1, 1}, {1, 1, 2}, {1, 5, 4}, 3, 2, 64};
    s.dimensions = {20, 1.5, 1.6, 10, 0.2, 0.3, 0.4};
    return s;
}

sim::Detector ring_detector() {
    sim::DetectorModel model;
    model.seed = 4;
    model.gain_spread = 0.05;
    return sim::make_detector(ring_scanner(), model);
}

config::Calibration nominal() {
    config::CalibrationModel model;
    model.seed = 9;
    model.energy_spread = 0;
    model.time_offset_ticks = 3;
    return config::make_calibration(ring_scanner(), model);
}

struct Workshop {
    TemporaryDirectory dir;
    config::Scanner scanner = ring_scanner();
    sim::Detector detector = ring_detector();

    Workshop() {
        write_file(dir / "s.json", config::to_json(scanner).dump());
        config::save_calibration(dir / "nominal.h5", scanner.geometry, nominal());
    }
    [[nodiscard]] std::string at(const std::string& name) const { return (dir / name).string(); }
    /// Takes spectra with a calibration.
    void take(const std::string& calibration, const std::string& to, double counts = 6000,
              double line_keV = 511) const {  // NOLINT(readability-identifier-naming)
        const auto in_use = config::load_calibration(dir / calibration, scanner.geometry);
        config::save_spectra(dir / to, scanner.geometry,
                             true_spectra(scanner.geometry, detector, in_use, counts, line_keV));
    }
    [[nodiscard]] Outcome petcal(const std::string& arguments) const {
        return shell("cd" + quoted(dir.path()) + "&&" + quoted(PETCAL_PROGRAM) + arguments +
                     " --scanner s.json");
    }
    [[nodiscard]] nlohmann::json difference(const std::string& a, const std::string& b) const {
        const Outcome done = petcal("compare --json " + a + " " + b);
        REQUIRE(done.status == 0);
        return nlohmann::json::parse(done.out);
    }
};

}  // namespace

TEST_CASE("a scanner is calibrated from a nominal calibration in two rounds") {
    const Workshop w;
    const auto& g = w.scanner.geometry;
    config::save_calibration(w.dir / "best.h5", g, sim::calibration_of(w.scanner, w.detector));
    w.take("nominal.h5", "flood.h5");
    const Outcome crystals =
        w.petcal("derive crystals --spectra flood.h5 -o crystals.h5 --report crystals.html");
    CAPTURE(crystals.out);
    REQUIRE(crystals.status == 0);
    CHECK(lacking(crystals.out, {"units               6 of 6", "120 of 120 crystals"}) == "");
    std::vector<float> quality;
    config::read_hdf5_file(w.dir / "crystals.h5", [&](hid_t h5) {
        config::read_table(h5, {"quality", "f32", H5T_NATIVE_FLOAT, {3, 2, 5}}, quality);
    });
    CHECK(quality[0] == 6000);
    CHECK(quality[1] == 1);
    CHECK(quality[2] == Approx(1 / (2.3548 * 0.25)).epsilon(0.1));
    CHECK(quality[4] < 0.35);
    const Outcome with_map = w.petcal("apply --calibration nominal.h5 --crystals crystals.h5 -o mapped.h5");
    CAPTURE(with_map.out);
    REQUIRE(with_map.status == 0);

    w.take("mapped.h5", "energies.h5");
    const Outcome energy = w.petcal(
        "derive energy --spectra energies.h5 --calibration mapped.h5 -o energy.h5 --report energy.html");
    CAPTURE(energy.out);
    REQUIRE(energy.status == 0);
    CHECK(lacking(energy.out, {"120 of 120 crystals", "resolution          1"}) == "");
    REQUIRE(w.petcal("apply --calibration mapped.h5 --energy energy.h5 -o new.h5").status == 0);

    const auto before = w.difference("best.h5", "nominal.h5");
    const auto after = w.difference("best.h5", "new.h5");
    CHECK(before["energy_factor"]["rms_percent"].get<double>() > 3);
    CHECK(after["energy_factor"]["rms_percent"].get<double>() < 0.5);
    CHECK(before["position_table"]["differing_fraction"].get<double>() > 0.1);
    CHECK(after["position_table"]["differing_fraction"].get<double>() < 0.06);
    CHECK(config::load_calibration(w.dir / "new.h5", g).time_offset == nominal().time_offset);

    {  // both steps at once give the same tables
        REQUIRE(
            w.petcal("apply --calibration nominal.h5 --crystals crystals.h5 --energy energy.h5 -o both.h5")
                .status == 0);
        const auto both = config::load_calibration(w.dir / "both.h5", g);
        const auto one = config::load_calibration(w.dir / "new.h5", g);
        CHECK(both.position_table == one.position_table);
        CHECK(both.energy_factor == one.energy_factor);
    }
    {  // the result says what it was made from
        const Outcome shown = w.petcal("inspect --json new.h5");
        const auto origin = nlohmann::json::parse(shown.out)["origin"];
        CHECK(origin["calibration_sha256"] == config::sha256_of_file(w.dir / "mapped.h5"));
        CHECK(origin["energy_sha256"] == config::sha256_of_file(w.dir / "energy.h5"));
        CHECK(!origin.contains("crystals_sha256"));
        CHECK(lacking(origin["made_by"], {"petcal apply 1."}) == "");
        CHECK(origin["created_utc"].get<std::string>().size() >= 20);
        CHECK(lacking(w.petcal("inspect new.h5").out,
                      {"energy_sha256", origin["energy_sha256"].get<std::string>()}) == "");
    }
    {  // energies of one crystal map are refused for another one
        const Outcome refused = w.petcal("apply --calibration nominal.h5 --energy energy.h5 -o other.h5");
        CHECK(refused.status == 78);
        CHECK(lacking(refused.out, {"energy.h5: expected energies of the crystal map of this calibration",
                                    "found those of another one"}) == "");
        CHECK(!std::filesystem::exists(w.dir / "other.h5"));
        const Outcome wrong =
            w.petcal("derive energy --spectra energies.h5 --calibration nominal.h5 -o other.h5");
        CHECK(wrong.status == 78);
        CHECK(lacking(wrong.out,
                      {"energies.h5: expected spectra taken with the calibration nominal.h5 (SHA-256 " +
                           config::sha256_of_file(w.dir / "nominal.h5"),
                       "found those of another one (calibration_sha256 " +
                           config::sha256_of_file(w.dir / "mapped.h5")}) == "");
        CHECK(!std::filesystem::exists(w.dir / "other.h5"));
        config::Spectra unnamed = config::load_spectra(w.dir / "energies.h5", w.scanner.geometry);
        unnamed.calibration_sha256.clear();
        config::save_spectra(w.dir / "unnamed.h5", w.scanner.geometry, unnamed);
        const Outcome unknown =
            w.petcal("derive energy --spectra unnamed.h5 --calibration mapped.h5 -o other.h5");
        CHECK(unknown.status == 78);
        CHECK(lacking(unknown.out, {"unnamed.h5: ", "found no attribute calibration_sha256"}) == "");
    }
    {  // reports contain their pictures and show names as text
        for (const auto* report : {"crystals.html", "energy.html"}) {
            const std::string page = read_file(w.dir / report);
            CHECK(lacking(page, {"data:image/png;base64,iVBORw0KGgo", "&lt;ring&gt;", "</html>"}) == "");
            CHECK(page.find("http") == std::string::npos);
            CHECK(page.find("<ring>") == std::string::npos);
        }
    }
}

TEST_CASE("units without data are refused, or left out on demand") {
    Workshop w;
    const auto& g = w.scanner.geometry;
    for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local)
        w.detector.crystals[g.crystal(1, 1, local)].state = sim::CrystalState::dead;
    w.detector.crystals[g.crystal(2, 0, 9)].state = sim::CrystalState::dead;
    w.take("nominal.h5", "flood.h5", 3000);
    const std::string derive = "derive crystals --spectra flood.h5 -o crystals.h5 --report crystals.html";
    const Outcome refused = w.petcal(derive);
    CHECK(refused.status == 78);
    CHECK(lacking(refused.out,
                  {"1 of 6 units cannot be derived",
                   "BDM 1, DU 1: expected at least 200 counts per crystal, found 0.0", "--partial"}) == "");
    CHECK(!std::filesystem::exists(w.dir / "crystals.h5"));
    CHECK(lacking(read_file(w.dir / "crystals.html"), {"expected at least 200 counts"}) == "");

    REQUIRE(w.petcal(derive + " --force --partial").status == 0);
    REQUIRE(w.petcal("apply --calibration nominal.h5 --crystals crystals.h5 -o mapped.h5").status == 0);
    const auto units = w.difference("nominal.h5", "mapped.h5")["position_table"]["units"];
    REQUIRE(units.size() == 6);
    CHECK(units[3]["differing_fraction"] == 0);
    CHECK(units[4]["differing_fraction"].get<double>() > 0.1);

    w.take("mapped.h5", "energies.h5", 3000);
    const std::string energies = "derive energy --spectra energies.h5 --calibration mapped.h5 -o energy.h5";
    CHECK(lacking(w.petcal(energies).out, {"BDM 1, DU 1: expected photopeaks"}) == "");
    // A failure after the warning does not hide it: no file can be written.
    const Outcome failed =
        shell("cd" + quoted(w.dir.path()) + "&& ( trap '' XFSZ; ulimit -f 0;" + quoted(PETCAL_PROGRAM) +
              energies + " --partial --scanner s.json ) 2>&1 | cat");
    CHECK(!std::filesystem::exists(w.dir / "energy.h5"));
    CHECK(lacking(failed.out, {"petcal: 1 of 6 units cannot be derived", "petcal: energy.h5"}) == "");
    const Outcome partial = w.petcal(energies + " --partial");
    CAPTURE(partial.out);
    REQUIRE(partial.status == 0);
    REQUIRE(w.petcal("apply --calibration mapped.h5 --energy energy.h5 -o new.h5").status == 0);
    const auto old = config::load_calibration(w.dir / "mapped.h5", g);
    const auto made = config::load_calibration(w.dir / "new.h5", g);
    const std::size_t each = std::size_t{g.crystals_per_du()} * old.bins;
    for (std::size_t i = 0; i < old.energy_factor.size(); ++i) {
        const bool same = made.energy_factor[i] == old.energy_factor[i];
        if (same != (i / each == 3)) FAIL("factor " << i);
    }
}

TEST_CASE("a second line finds how crystals deviate from linearity") {
    Workshop w;
    const auto& g = w.scanner.geometry;
    sim::DetectorModel model;
    model.seed = 4;
    model.spot_sigma = 0.15;
    model.gain_spread = 0.05;
    model.nonlinearity = 0.15;  // 2 to 5.5 % fewer ADC counts per keV at 661.7 keV than at 511 keV
    w.detector = sim::make_detector(w.scanner, model);
    config::Calibration mapped = sim::calibration_of(w.scanner, w.detector);
    mapped.bins = 1;
    mapped.energy_factor.assign(std::size_t{6} * g.crystals_per_du(), 0.25F);
    config::save_calibration(w.dir / "mapped.h5", g, mapped);
    w.take("mapped.h5", "first.h5", 20'000);
    w.take("mapped.h5", "second.h5", 20'000, 661.7);
    const std::string derive = "derive energy --calibration mapped.h5 --spectra first.h5 -o energy.h5 ";
    const Outcome linear = w.petcal(derive);
    REQUIRE(linear.status == 0);
    REQUIRE(w.petcal("apply --calibration mapped.h5 --energy energy.h5 -o linear.h5").status == 0);
    const Outcome both =
        w.petcal(derive + "--force --second second.h5 --second-line-keV 661.7 --report energy.html");
    CAPTURE(both.out);
    REQUIRE(both.status == 0);
    CHECK(lacking(both.out, {"second line         120 of 120 crystals at 661.7 keV",
                             "non-linearity       -3.", "error of it         0."}) == "");
    CHECK(lacking(read_file(w.dir / "energy.html"),
                  {"Second line", "120 of 120 crystals have a photopeak at 661.7 keV"}) == "");
    REQUIRE(w.petcal("apply --calibration mapped.h5 --energy energy.h5 -o bent.h5").status == 0);

    // The relative error of the energy that the calibration gives a frame of true energy E, as rms over the
    // crystals.
    const auto error_at = [&](const std::string& file, double energy) {
        const auto c = config::load_calibration(w.dir / file, g);
        double squares = 0;
        for (std::uint32_t unit = 0; unit < 6; ++unit) {
            for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local) {
                const auto& crystal = w.detector.crystals[g.crystal(unit / 2, unit % 2, local)];
                const auto adc = static_cast<std::uint32_t>(std::lround(sim::adc_of(crystal, energy)));
                const std::size_t at = (std::size_t{unit} * g.crystals_per_du() + local) * c.bins;
                const double found = adc * double{c.energy_factor[at + std::min(adc / 10, c.bins - 1)]};
                squares += std::pow(found / energy - 1, 2) / 120;
            }
        }
        return 100 * std::sqrt(squares);
    };
    CAPTURE(error_at("linear.h5", 350), error_at("linear.h5", 650), error_at("bent.h5", 350),
            error_at("bent.h5", 511), error_at("bent.h5", 650), error_at("bent.h5", 900));
    CHECK(error_at("linear.h5", 511) < 0.4);
    CHECK(error_at("linear.h5", 350) > 3);
    CHECK(error_at("linear.h5", 650) > 3);
    CHECK(error_at("bent.h5", 350) < 0.5);
    CHECK(error_at("bent.h5", 511) < 0.4);
    CHECK(error_at("bent.h5", 650) < 0.4);
    CHECK(error_at("bent.h5", 900) < 1.5);

    // Once more, from spectra by factors that already bend: nothing is left to change.
    w.take("bent.h5", "first-again.h5", 20'000);
    w.take("bent.h5", "second-again.h5", 20'000, 661.7);
    REQUIRE(w.petcal("derive energy --calibration bent.h5 --spectra first-again.h5 --second second-again.h5 "
                     "--second-line-keV 661.7 -o again.h5")
                .status == 0);
    REQUIRE(w.petcal("apply --calibration bent.h5 --energy again.h5 -o twice.h5").status == 0);
    CHECK(error_at("twice.h5", 350) < 0.5);
    CHECK(error_at("twice.h5", 650) < 0.4);

    const auto refused = [&](const std::string& options, int status, const std::string& why) {
        const Outcome out =
            w.petcal("derive energy --calibration mapped.h5 --spectra first.h5 -o none.h5 " + options);
        INFO(out.out);
        CHECK(out.status == status);
        CHECK(lacking(out.out, {why}) == "");
        CHECK(!std::filesystem::exists(w.dir / "none.h5"));
    };
    w.take("mapped.h5", "few.h5", 300, 661.7);
    refused("--second few.h5 --second-line-keV 661.7", 78,
            "BDM 0, DU 0: at the second line: expected photopeaks with at least 250 counts");
    refused("--second second.h5 --second-line-keV 356", 78, "at the second line: expected photopeaks");
    refused("--second second.h5", 78, "expected --second and --second-line-keV together");
    refused("--second-line-keV 661.7", 78, "expected --second and --second-line-keV together");
    refused("--second second.h5 --second-line-keV 520", 78, "15 % or more from 511 keV");
    refused("--second second.h5 --second-line-keV nan", 64, "expected a finite number");
    refused("--second first-again.h5 --second-line-keV 661.7", 78, "found those of another one");
    refused("--second none-such.h5 --second-line-keV 661.7", 74, "none-such.h5");
}

TEST_CASE("corrections by hand overrule the peaks, and bad ones are refused") {
    const Workshop w;
    w.take("nominal.h5", "flood.h5", 2000);
    const std::string derive =
        "derive crystals --spectra flood.h5 -o c.h5 --force --corrections by-hand.json";
    const auto correct = [&](const std::string& spots) {
        write_file(w.dir / "by-hand.json", "{\"spots\": [" + spots + "]}");
        return w.petcal(derive);
    };
    REQUIRE(w.petcal("derive crystals --spectra flood.h5 -o plain.h5").status == 0);
    REQUIRE(w.petcal("apply --calibration nominal.h5 --crystals plain.h5 -o a.h5").status == 0);
    REQUIRE(correct(R"({"bdm": 2, "du": 1, "row": 2, "column": 1, "x": 28.5, "y": 36})").status == 0);
    REQUIRE(w.petcal("apply --calibration nominal.h5 --crystals c.h5 -o b.h5").status == 0);
    const auto units = w.difference("a.h5", "b.h5")["position_table"]["units"];
    CHECK(units[0]["differing_fraction"] == 0);
    CHECK(units[5]["differing_fraction"].get<double>() > 0.001);

    const std::string spot = R"({"bdm": 2, "du": 1, "row": 2, "column": 1, "x": 28.5, "y": 36})";
    CHECK(lacking(correct(spot + "," + spot).out, {"by-hand.json", "row 2, column 1", "twice"}) == "");
    const auto high = correct(R"({"bdm": 3, "du": 1, "row": 2, "column": 1, "x": 28.5, "y": 36})");
    CHECK(high.status == 78);
    CHECK(lacking(high.out, {"by-hand.json: /spots/0/bdm", "0 to 2", "3"}) == "");
    CHECK(lacking(correct(R"({"bdm": 0, "du": 1, "row": 2, "column": 1, "x": 64, "y": 36})").out,
                  {"/spots/0/x"}) == "");
    CHECK(lacking(correct(R"({"bdm": 0, "du": 1, "row": 2, "colum": 1, "x": 6, "y": 36})").out,
                  {"/spots/0"}) == "");
    write_file(w.dir / "by-hand.json", "[");
    CHECK(w.petcal(derive).status == 78);
}

TEST_CASE("derive, apply and compare refuse files of another kind") {
    const Workshop w;
    w.take("nominal.h5", "flood.h5", 300);
    CHECK(w.petcal("derive").status == 64);
    CHECK(w.petcal("derive crystals -o c.h5").status == 64);
    CHECK(w.petcal("derive crystals --spectra none.h5 -o c.h5").status == 74);
    CHECK(w.petcal("derive crystals --spectra nominal.h5 -o c.h5").status == 78);
    CHECK(w.petcal("derive energy --spectra flood.h5 --calibration flood.h5 -o c.h5").status == 78);
    CHECK(w.petcal("apply --calibration nominal.h5 -o c.h5").status == 78);
    CHECK(lacking(w.petcal("apply --calibration nominal.h5 --crystals nominal.h5 -o c.h5").out,
                  {"nominal.h5: data set \"derived\"", "no such data set"}) == "");
    CHECK(lacking(w.petcal("apply --calibration nominal.h5 --energy nominal.h5 -o c.h5").out,
                  {"nominal.h5: data set \"state\"", "no such data set"}) == "");
    CHECK(w.petcal("compare nominal.h5 flood.h5").status == 78);
    CHECK(!std::filesystem::exists(w.dir / "c.h5"));
    const Outcome same = w.petcal("compare nominal.h5 nominal.h5");
    CHECK(same.status == 0);
    CHECK(lacking(same.out, {"other crystal: 0.000 % of positions", "rms 0.000 %", "largest 0 ticks"}) == "");
}

}  // namespace petacq::test

// The program petcal as its users see it.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/calibration.hpp"
#include "config/make_calibration.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/odd_scanner.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/normalisation/normalisation.hpp"

namespace petacq::test {

namespace {

Outcome petcal(const std::string& arguments) {
    return shell(quoted(PETCAL_PROGRAM) + arguments);
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// A directory with the tiny scanner's description in it.
struct Place {
    TemporaryDirectory dir;
    Place() { write_file(dir / "s.json", config::to_json(tiny_scanner()).dump()); }
    [[nodiscard]] std::string at(const std::string& name) const { return (dir / name).string(); }
    [[nodiscard]] std::string scanner() const { return "--scanner " + at("s.json") + " "; }
};

}  // namespace

TEST_CASE("petcal make writes what make_calibration makes") {
    const Place p;
    const auto made = petcal("make " + p.scanner() + "--output " + p.at("c.h5") +
                             " --seed 5 --energy-spread 0.2 --bins 4 --nonlinearity 0.1 --time-offset-ticks 9"
                             " --gain-keV-per-adc 0.5");
    CHECK(made.out.empty());
    REQUIRE(made.status == 0);
    config::CalibrationModel model;
    model.seed = 5;
    model.energy_spread = 0.2;
    model.bins = 4;
    model.nonlinearity = 0.1;
    model.time_offset_ticks = 9;
    model.gain_keV_per_adc = 0.5;
    const auto expected = config::make_calibration(tiny_scanner(), model);
    const auto found = config::load_calibration(p.at("c.h5"), tiny_scanner().geometry);
    CHECK(found.position_table == expected.position_table);
    CHECK(found.energy_factor == expected.energy_factor);
    CHECK(found.time_offset == expected.time_offset);
}

TEST_CASE("petcal import takes raw tables") {
    const Place p;
    config::CalibrationModel model;
    model.bins = 3;
    model.time_offset_ticks = 4;
    const auto tables = config::make_calibration(tiny_scanner(), model);
    write_file(p.at("pos"), bytes_of(std::vector<std::uint8_t>(tables.position_table.begin(),
                                                               tables.position_table.end())));
    write_file(p.at("factor"), bytes_of(tables.energy_factor));
    write_file(p.at("offset"), bytes_of(tables.time_offset));
    const std::string command = "import " + p.scanner() + "--position-table " + p.at("pos") +
                                " --energy-factor " + p.at("factor") + " --force --output " + p.at("c.h5");

    REQUIRE(petcal(command + " --bins 3 --time-offset " + p.at("offset")).status == 0);
    auto found = config::load_calibration(p.at("c.h5"), tiny_scanner().geometry);
    CHECK(found.position_table == tables.position_table);
    CHECK(found.energy_factor == tables.energy_factor);
    CHECK(found.time_offset == tables.time_offset);

    REQUIRE(petcal(command + " --bins 3").status == 0);
    CHECK(config::load_calibration(p.at("c.h5"), tiny_scanner().geometry).time_offset.empty());

    const auto wrong = petcal(command + " --bins 4");
    CHECK(wrong.status == 78);
    CHECK(lacking(wrong.out, {p.at("factor"), "expected 1152 bytes (f32[6][2][6][4]), found 864"}) == "");

    write_file(p.at("offset"), "short");
    const auto short_file = petcal(command + " --bins 3 --time-offset " + p.at("offset"));
    CHECK(short_file.status == 78);
    CHECK(lacking(short_file.out, {"expected 288 bytes (i32[72]), found 5"}) == "");

    std::filesystem::remove(p.at("pos"));
    CHECK(petcal(command + " --bins 3").status == 74);
}

TEST_CASE("petcal inspect shows what is in a file") {
    const Place p;
    const auto g = tiny_scanner().geometry;
    config::Calibration c;
    c.bins = 2;
    // Positions 0..5 of each unit name crystals, but unit (2, 1) lacks origin 3.
    c.position_table.assign(6 * 2 * 256, 255);
    for (std::size_t unit = 0; unit < 12; ++unit) {
        for (std::uint8_t origin = 0; origin < 6; ++origin) {
            if (unit != 5 || origin != 3) c.position_table[unit * 256 + origin] = origin;
        }
    }
    c.energy_factor.assign(6 * 2 * 6 * 2, 0.5F);
    c.energy_factor[1] = 0.75F;
    c.energy_factor[10] = 0;
    c.time_offset.assign(72, 1);
    c.time_offset[5] = -20;
    c.time_offset[6] = 30;
    config::save_calibration(p.at("c.h5"), g, c);

    const auto shown = petcal("inspect " + p.at("c.h5") + " " + p.scanner() + "--json");
    REQUIRE(shown.status == 0);
    const auto j = nlohmann::json::parse(shown.out);
    CHECK(j["sha256"] == config::sha256_of_file(p.at("c.h5")));
    CHECK(j["position_table"]["shape"] == nlohmann::json({6, 2, 256}));
    CHECK(j["position_table"]["outside_fraction"].get<double>() == Approx((12 * 250 + 1) / 3072.0));
    CHECK(j["position_table"]["crystals_without_position"] == 1);
    CHECK(j["energy_factor"]["shape"] == nlohmann::json({6, 2, 6, 2}));
    CHECK(j["energy_factor"]["min_keV_per_adc"] == 0);
    CHECK(j["energy_factor"]["median_keV_per_adc"] == 0.5);
    CHECK(j["energy_factor"]["max_keV_per_adc"] == 0.75);
    CHECK(j["energy_factor"]["zero"] == 1);
    CHECK(j["energy_factor"]["bins_unlike_first"] == 2);
    CHECK(j["time_offset"]["min_ticks"] == -20);
    CHECK(j["time_offset"]["max_ticks"] == 30);

    const auto text = petcal("inspect " + p.at("c.h5") + " " + p.scanner());
    CHECK(text.status == 0);
    CHECK(lacking(text.out, {"u8[6][2][256]", "crystals without a position: 1", "max 0.75", "-20 to 30",
                             config::sha256_of_file(p.at("c.h5"))}) == "");
}

TEST_CASE("petcal names the BDM and DU that a module of the description is read by") {
    const Place p;
    const std::filesystem::path scanner = example("scanners/hexagon.scanner.json");  // six modules to a BDM
    const config::Geometry g = config::load_scanner(scanner).geometry;
    auto n = normalisation::Normalisation::even(g);
    constexpr std::size_t crystals = 64;  // in a module
    const auto module_8 = n.efficiency.begin() + 8 * crystals;
    std::fill(module_8, module_8 + crystals, 0);
    normalisation::save(p.at("n.h5"), g, n);

    const auto text = petcal("inspect " + p.at("n.h5") + " --scanner " + quoted(scanner));
    INFO(text.out);
    REQUIRE(text.status == 0);
    CHECK(lacking(text.out, {"dead units          1\n  BDM 1, DU 2\n"}) == "");
    CHECK_THAT(text.out, !contains("module"));
}

TEST_CASE("petcal inspect shows how a calibration was made, whatever the file says") {
    const Place p;
    auto c = config::make_calibration(tiny_scanner(), {});
    c.origin = {{"made_by", "somebody"},
                {"note",
                 "a\x1B\xFF"
                 "b"},
                {"nothing", ""}};
    config::save_calibration(p.at("c.h5"), tiny_scanner().geometry, c);
    c.origin.erase("nothing");
    CHECK(config::load_calibration(p.at("c.h5"), tiny_scanner().geometry).origin == c.origin);
    const auto shown = petcal("inspect " + p.at("c.h5") + " " + p.scanner() + "--json");
    REQUIRE(shown.status == 0);
    CHECK(nlohmann::json::parse(shown.out)["origin"] ==
          nlohmann::json{{"made_by", "somebody"}, {"note", R"(a\u001b\xffb)"}});
    CHECK(lacking(petcal("inspect " + p.at("c.h5") + " " + p.scanner()).out,
                  {"made_by         somebody", R"(a\u001b\xffb)"}) == "");
}

TEST_CASE("petcal replaces a file only with --force") {
    const Place p;
    const std::string make = "make " + p.scanner() + "--output " + p.at("c.h5");
    REQUIRE(petcal(make).status == 0);
    const std::string first = read_file(p.at("c.h5"));
    const std::vector<std::string> commands{
        make + " --seed 2",
        "import " + p.scanner() + "--position-table p --energy-factor e --bins 1 -o " + p.at("c.h5"),
        "apply " + p.scanner() + "--calibration " + p.at("c.h5") + " --energy e.h5 -o " + p.at("c.h5"),
        "derive crystals " + p.scanner() + "--spectra s.h5 -o " + p.at("c.h5"),
        "derive crystals " + p.scanner() + "--spectra s.h5 -o n.h5 --report " + p.at("c.h5"),
        "derive energy " + p.scanner() + "--spectra s.h5 --calibration o.h5 -o " + p.at("c.h5"),
        "derive time " + p.scanner() + "--run r --calibration o.h5 --point 0,0,0 -o " + p.at("c.h5"),
        "derive normalisation " + p.scanner() + "--run r --cylinder 0,0,0,1,2 -o " + p.at("c.h5"),
        "derive activity " + p.scanner() + "--normalisation n.h5 --image i --cylinder 0,0,0,1,2 " +
            "--concentration-kBq-ml 1 -o " + p.at("c.h5"),
        "check r --report " + p.at("c.h5"),
    };
    for (const std::string& command : commands) {
        INFO(command);
        const Outcome refused = petcal(command);
        CHECK(refused.status == 64);
        CHECK(lacking(refused.out, {p.at("c.h5") + " exists and was not replaced", "--force"}) == "");
        CHECK(petcal(command + " --help").out.find("--force") != std::string::npos);
    }
    CHECK(read_file(p.at("c.h5")) == first);
    std::filesystem::create_symlink("nowhere", p.at("link.h5"));
    CHECK(petcal("make " + p.scanner() + "--output " + p.at("link.h5")).status == 64);
    std::filesystem::remove(p.at("link.h5"));

    REQUIRE(petcal(make + " --seed 2 --force").status == 0);
    CHECK(read_file(p.at("c.h5")) != first);
    // A command that fails leaves what was there, and nothing else.
    CHECK(petcal(make + " --energy-spread 2 --force").status == 64);
    CHECK(std::filesystem::exists(p.at("c.h5")));
    CHECK(std::distance(std::filesystem::directory_iterator(p.dir.path()), {}) == 2);
}

TEST_CASE("petcal apply --bdm-ticks shifts what frames name, and nothing else") {
    const Place p;
    nlohmann::json description = odd_description();
    const auto units = [](std::uint32_t bdm, std::uint32_t module) {
        return nlohmann::json{{"bdm", bdm}, {"du", 3}, {"module", module}};
    };
    description["modules"].erase(0);
    description["module_types"].erase(0);
    description["channel_map"] = {{"units", {units(5, 0), units(2, 1)}}};
    write_file(p.at("s.json"), description.dump());
    const config::Geometry g = config::load_scanner(p.at("s.json")).geometry;
    const std::string old = p.scanner() + "--calibration " + p.at("c.h5") + " -o " + p.at("new.h5");
    REQUIRE(petcal("make " + p.scanner() + "-o " + p.at("c.h5") + " --seed 1 --time-offset-ticks 9").status ==
            0);

    const Outcome applied = petcal("apply " + old + " --bdm-ticks 5:-640 --bdm-ticks 2:+3");
    INFO(applied.out);
    REQUIRE(applied.status == 0);
    const auto before = config::load_calibration(p.at("c.h5"), g).time_offset;
    const auto after = config::load_calibration(p.at("new.h5"), g).time_offset;
    for (std::uint32_t crystal = 0; crystal < g.crystal_count(); ++crystal)  // 30 in each module
        CHECK(after[crystal] - before[crystal] == (crystal < 30 ? -640 : 3));

    for (const char* none : {"0:1", "6:1", "5", "x:1", "5:1.5", "-5:1"}) {
        const Outcome refused = petcal("apply " + old + " --force --bdm-ticks=" + none);
        CHECK(refused.status == 78);
        CHECK_THAT(refused.out, contains("one of the BDMs 2, 5, found '" + std::string(none)));
    }
}

TEST_CASE("petcal reports errors in words and by its exit status") {
    const Place p;
    CHECK(petcal("").status == 64);
    CHECK(petcal("frobnicate").status == 64);
    CHECK(petcal("make " + p.scanner()).status == 64);
    CHECK(petcal("make " + p.scanner() + "--output " + p.at("c.h5") + " --bins x").status == 64);
    CHECK(petcal("--help").status == 0);
    const auto model = petcal("make " + p.scanner() + "--output " + p.at("c.h5") + " --energy-spread 2");
    CHECK(model.status == 64);
    CHECK(lacking(model.out, {"energy_spread: expected 0"}) == "");
    const auto missing = petcal("inspect " + p.at("none.h5") + " " + p.scanner());
    CHECK(missing.status == 74);
    CHECK(lacking(missing.out, {"petcal: ", "none.h5", "No such file"}) == "");
    write_file(p.at("bad.h5"), "no HDF5");
    const auto bad = petcal("inspect " + p.at("bad.h5") + " " + p.scanner());
    CHECK(bad.status == 78);
    CHECK(lacking(bad.out, {"bad.h5: not an HDF5 file"}) == "");
    CHECK(petcal("make " + p.scanner() + "--output " + p.at("none/c.h5")).status == 74);
    write_file(p.at("s.json"), "{");
    CHECK(petcal("make " + p.scanner() + "--output " + p.at("c.h5")).status == 78);
}

}  // namespace petacq::test

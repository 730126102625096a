// The calibration of scanners of the long form through the command line: units of two layers and of different
// numbers of crystals, and modules of different types.
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"
#include "tests/end_to_end/arrangements/chain.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/odd_scanner.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

/// `count` crystals across the layer, and along the axis.
void divide(json& layer, std::array<int, 2> count, std::array<double, 2> pitch_mm) {
    layer["y"] = {{"count", count[0]}, {"pitch_mm", pitch_mm[0]}};
    layer["z"] = {{"count", count[1]}, {"pitch_mm", pitch_mm[1]}};
}

/// Few modules of a phoswich of few crystals.
json small_phoswich() {
    json scanner = example_scanner("phoswich");
    divide(scanner["module_types"][0]["layers"][0], {3, 3}, {3.7, 3.7});
    divide(scanner["module_types"][0]["layers"][1], {4, 4}, {3.2, 3.2});
    scanner["modules"][0]["ring"] = {{"count", 8}, {"radius_mm", 17}};
    scanner["modules"][0].erase("along_z");
    scanner.erase("sources");
    return scanner;
}

/// An insert of few modules in few modules, both of few crystals.
json small_insert() {
    json scanner = example_scanner("insert");
    divide(scanner["module_types"][0]["layers"][0], {6, 5}, {8, 8});
    divide(scanner["module_types"][1]["layers"][0], {6, 7}, {2, 2});
    scanner["modules"][0]["ring"] = {{"count", 8}, {"radius_mm", 62}};
    scanner["modules"][1]["ring"] = {{"count", 8}, {"radius_mm", 16}};
    for (json& part : scanner["modules"])
        part.erase("along_z");
    scanner["good_pairs"]["cylinder"] = {{"radius_mm", 13}, {"length_mm", 60}};
    scanner.erase("sources");
    return scanner;
}

std::vector<std::string> in_air(const EvenCylinder& c, const std::string& seed,
                                const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"--seed", seed,         "--scatter",
                                    "0",      "--cylinder", c.text() + "," + std::to_string(c.mbq)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

std::set<int> modules_of(const json& document) {
    std::set<int> modules;
    for (const json& finding : document["findings"])
        modules.insert(finding["bdm"].is_null() ? -1 : finding["bdm"].get<int>());
    return modules;
}

}  // namespace

TEST_CASE("calibration of any scanner: all steps through the command line", "[e2e][arrangements]") {
    struct Case {
        const char* name;
        json scanner;
        EvenCylinder source;
        double seconds;
    };
    const Case c = GENERATE(Case{"phoswich", small_phoswich(), {{0, 0, 0}, 12, 20, 2}, 1.5},
                            Case{"insert", small_insert(), {{0, 0, 0}, 12, 50, 2}, 1});
    INFO(c.name);
    Chain chain(c.scanner, json::object());
    const json before = chain.compare();
    CHECK(before["energy_factor"]["rms_percent"] > 5);
    CHECK(before["time_offset"]["rms_ps"] > 400);

    chain.simulate("flood", c.seconds, in_air(c.source, "3"));
    chain.replay("flood", "flood");
    chain.derive_crystals("flood");
    chain.replay("flood", "mapped");
    chain.derive_energy("mapped");
    chain.replay("flood", "untimed");
    chain.derive_time("untimed", c.source);
    const json after = chain.compare();
    INFO(after.dump());
    CHECK(after["position_table"]["differing_fraction"] <
          before["position_table"]["differing_fraction"].get<double>() / 3);
    CHECK(after["energy_factor"]["rms_percent"] < 1);
    CHECK(after["time_offset"]["rms_ps"] < 80);
    const json inspected = chain.inspect();
    CHECK(inspected["position_table"]["crystals_without_position"] == 0);
    CHECK(inspected["energy_factor"]["zero"] == 0);
    CHECK(inspected["energy_factor"]["min_keV_per_adc"] > 0.15);

    chain.replay("flood", "reference");
    // The daily check names the module whose gain has changed.
    chain.simulate("changed", 1, in_air(c.source, "4", {"--gain-step", "6@0:-4"}));
    chain.replay("changed", "changed");
    const json checked = json::parse(output_of(PETCAL_PROGRAM,
                                               {"check", chain.site().run("changed").string(), "--reference",
                                                chain.site().run("reference").string(), "--json"},
                                               1));
    INFO(checked.dump());
    CHECK(modules_of(checked) == std::set<int>{6});

    if (std::string(c.name) == "insert") return;  // the normalisation would need a longer scan
    chain.derive_normalisation("reference", c.source);
    const json normalisation =
        json::parse(output_of(PETCAL_PROGRAM, {"inspect", chain.path("normalisation.h5"), "--scanner",
                                               chain.site().scanner(), "--json"}));
    CHECK(normalisation["efficiency"]["count"] == chain.scanner().geometry.crystal_count());
    CHECK(normalisation["dead_units"].empty());

    // A normalisation belongs to one scanner.
    json other = c.scanner;
    other["modules"][0]["ring"]["radius_mm"] = c.scanner["modules"][0]["ring"]["radius_mm"].get<double>() + 1;
    write_file(chain.path("other.json"), other.dump());
    const Outcome refused =
        run_program(PETLM_PROGRAM, {"image", chain.site().run("reference").string(), "-o",
                                    chain.path("refused"), "--scanner", chain.path("other.json"),
                                    "--normalisation", chain.path("normalisation.h5")});
    INFO(refused.err);
    CHECK(contains(refused.err, "made for another scanner"));
}

TEST_CASE("calibration of any scanner: an imported map has each crystal of units of different sizes",
          "[e2e][arrangements]") {
    Chain chain(odd_description(), json::object());
    chain.import_true_map();
    CHECK(chain.compare()["position_table"]["differing_fraction"] == 0);
    const json inspected = chain.inspect();
    CHECK(inspected["position_table"]["crystals_without_position"] == 0);
    CHECK(inspected["energy_factor"]["zero"] == 0);
    CHECK(inspected["energy_factor"]["min_keV_per_adc"] == 0.25);
}

TEST_CASE("calibration of any scanner: what no crystal has is not counted", "[e2e][arrangements]") {
    Chain chain(odd_description(), json::object());
    const petacq::config::Geometry g = chain.scanner().geometry;
    petacq::config::Calibration c = petacq::config::load_calibration(chain.site().calibration(), g);
    double outside = 0;
    double positions = 0;
    const std::size_t in_unit = std::size_t{g.position_size} * g.position_size;
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        const std::uint32_t crystals = g.crystals_of_unit(unit);
        for (std::uint32_t local = crystals; local < g.crystals_per_du(); ++local)
            c.energy_factor[(std::size_t{unit} * g.crystals_per_du() + local) * c.bins] = 0;
        if (crystals == 0) continue;
        positions += static_cast<double>(in_unit);
        for (std::size_t i = 0; i < in_unit; ++i)
            if (c.position_table[unit * in_unit + i] >= crystals) ++outside;
    }
    petacq::config::save_calibration(chain.site().calibration(), g, c);
    const json inspected = chain.inspect();
    CHECK(inspected["energy_factor"]["zero"] == 0);
    CHECK(inspected["energy_factor"]["min_keV_per_adc"] == 0.25);
    CHECK(inspected["position_table"]["outside_fraction"] == Approx(outside / positions));
}

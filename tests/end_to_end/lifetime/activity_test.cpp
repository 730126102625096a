// petcal derive activity --by-coincidence on simulated runs, against the activity that was simulated.
#include <cmath>
#include <iostream>

#include "tests/end_to_end/lifetime/simulated.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

json source(const std::string& nuclide, double mbq, bool cylinder) {
    json out = {{"activity_MBq", mbq},
                {"nuclide", nuclide},
                {"positronium", {{{"fraction", 0.1}, {"ns", 0.125}}, {{"fraction", 0.9}, {"ns", 0.39}}}}};
    if (cylinder)
        out.update({{"type", "cylinder"}, {"centre_mm", {2, 0, 0}}, {"radius_mm", 3}, {"length_mm", 30}});
    else
        out.update({{"type", "point"}, {"position_mm", {3, 2, 1}}});
    return out;
}

Outcome derive(const Site& site, const std::string& run, const std::string& nuclide,
               const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "derive", "activity", "--by-coincidence",     run,       "--scanner", site.scanner(), "--nuclide",
        nuclide,  "--output", run + "/activity.json", "--force", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(PETCAL_PROGRAM, arguments);
}

/// Found by true activity, and the stated error.
std::pair<double, double> found(const Site& site, const std::string& run, const std::string& nuclide,
                                double mbq, bool cylinder) {
    const Outcome outcome = derive(site, run, nuclide,
                                   cylinder ? std::vector<std::string>{"--cylinder", "2,0,0,3,30"}
                                            : std::vector<std::string>{"--point", "3,2,1"});
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.status == 0);
    const json written = json::parse(read_file(run + "/activity.json"));
    const json document = json::parse(outcome.out);
    CHECK(document["activity"] == written);
    CHECK(document["files"] == json::array({run + "/activity.json"}));
    const json& activity = written["activity_MBq"];
    return {activity["at_start"].get<double>() / mbq, activity["relative_error"].get<double>()};
}

}  // namespace

TEST_CASE("the activity of a source follows from its own pairs, gammas and triples", "[e2e][activity]") {
    const Site site = site_with_triples("small.scanner.json", 1275);
    const std::string run = record(site, source("Na-22", 1, false), 2, "depth");
    const auto [ratio, error] = found(site, run, "Na-22", 1, false);
    INFO(ratio << " +- " << error);
    CHECK(error < 0.008);
    CHECK(std::abs(ratio - 1) < 3.5 * error);

    const auto refused = [&](const std::string& nuclide, const std::vector<std::string>& more,
                             const std::string& words) {
        const Outcome outcome = derive(site, run, nuclide, more);
        INFO(outcome.err);
        CHECK(outcome.status != 0);
        CHECK(contains(outcome.err, words));
    };
    refused("F-18", {"--point", "3,2,1"}, "one prompt gamma");
    refused("I-124", {"--point", "3,2,1"}, "one prompt gamma");
    refused("Na-22", {"--point", "20,2,1"}, "pass near the source");
    refused("Na-22", {}, "--point or --cylinder");
}

TEST_CASE("gammas that come without the source are those of a run without it", "[e2e][activity]") {
    const Site site = site_with_triples("small.scanner.json", 1275);
    const json gammas = {
        {"type", "point"}, {"position_mm", {-8, 3, -5}}, {"activity_MBq", 0.3}, {"photon_keV", 1275}};
    const std::string without = record(site, gammas, 1, "depth", {"--seed", "2"}, "without");
    const std::string run = record(site, json::array({source("Na-22", 1, false), gammas}), 1, "depth");
    const auto with = [&](const std::vector<std::string>& more) {
        std::vector<std::string> arguments{"--point", "3,2,1"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const Outcome outcome = derive(site, run, "Na-22", arguments);
        INFO(outcome.err);
        REQUIRE(outcome.status == 0);
        return json::parse(read_file(run + "/activity.json"))["activity_MBq"];
    };
    const json found = with({"--background", without});
    const double error = found["relative_error"];
    INFO(found.dump());
    CHECK(error < 0.015);
    CHECK(std::abs(found["mean"].get<double>() - 1) < 3.5 * error);
    CHECK(with({})["mean"].get<double>() > 1.2);
}

namespace {

struct ActivityCase {
    std::string name;
    std::string scanner;
    std::string nuclide;
    double gamma_keV;
    double mbq;
    double seconds;
    bool cylinder = false;
    bool water = false;
    std::string crystals = "scatter";
};

void check_activity(const ActivityCase& c) {
    const Site site = site_with_triples(c.scanner, c.gamma_keV);
    const std::string run =
        record(site, source(c.nuclide, c.mbq, c.cylinder), c.seconds, c.crystals,
               c.water ? std::vector<std::string>{"--object", "0,0,0,12,40"} : std::vector<std::string>{});
    const auto [ratio, error] = found(site, run, c.nuclide, c.mbq, c.cylinder);
    std::cout << c.name << ": found / true " << ratio << " +- " << error << std::endl;
    CHECK(error < 0.004);
    CHECK(std::abs(ratio - 1) < 3.5 * error);
    CHECK(std::abs(ratio - 1) < 0.01);
}

}  // namespace

TEST_CASE("the activity by coincidence within 1 %: two nuclides, two scanners", "[.long][e2e][activity]") {
    for (const ActivityCase& c :
         {ActivityCase{"small Na-22 2 MBq cylinder apart", small_scanner, "Na-22", 1275, 2, 40, true, false,
                       "depth"},
          ActivityCase{"box Sc-44 2 MBq apart", box_scanner, "Sc-44", 1157, 2, 20, false, false, "depth"}}) {
        DYNAMIC_SECTION(c.name) {
            check_activity(c);
        }
    }
}

TEST_CASE("the activity by coincidence within 1 %: nuclides, scanners, activities, air and water",
          "[.table][e2e][activity]") {
    for (const ActivityCase& c :
         {ActivityCase{"small Na-22 0.1 MBq", small_scanner, "Na-22", 1275, 0.1, 3000},
          ActivityCase{"small Na-22 1 MBq", small_scanner, "Na-22", 1275, 1, 300},
          ActivityCase{"small Na-22 3 MBq water", small_scanner, "Na-22", 1275, 3, 150, false, true},
          ActivityCase{"small Sc-44 1 MBq cylinder water", small_scanner, "Sc-44", 1157, 1, 400, true, true},
          ActivityCase{"small V-48 1 MBq", small_scanner, "V-48", 983.5, 1, 400},
          ActivityCase{"box Na-22 0.3 MBq", box_scanner, "Na-22", 1275, 0.3, 700},
          ActivityCase{"box Na-22 1 MBq cylinder water", box_scanner, "Na-22", 1275, 1, 300, true, true},
          ActivityCase{"box Sc-44 3 MBq", box_scanner, "Sc-44", 1157, 3, 80},
          ActivityCase{"box V-48 1 MBq water", box_scanner, "V-48", 983.5, 1, 400, false, true}}) {
        DYNAMIC_SECTION(c.name) {
            check_activity(c);
        }
    }
}

// petlm tracers on simulated scans of two cylinders, against the truth of the simulator.
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/end_to_end/records/tracer_images.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

constexpr double f18_mbq = 2;
constexpr double f18_positrons = 0.9686;  // per decay

/// The tracer with gammas, and how it is scanned.
struct TracerScan {
    const char* scanner;
    const char* nuclide;
    double positrons;  ///< per decay
    double mbq;
    double seconds;
    json pair_window;
    json gamma_window;
    /// x,y,z,radius,length of water, in which photons scatter; empty: none. The scan of the tracer alone has
    /// it, too.
    std::string water = {};
};

json cylinder(double x, double radius, double mbq, const char* nuclide) {
    return {{"type", "cylinder"}, {"centre_mm", {x, 0, 0}}, {"radius_mm", radius},
            {"length_mm", 30},    {"activity_MBq", mbq},    {"nuclide", nuclide}};
}

std::string record_scan(const Site& site, const TracerScan& scan, const json& sources, const std::string& run,
                        unsigned seed) {
    const std::string file = (site.directory() / (run + ".json")).string();
    write_file(file, json{{"sources", sources}}.dump());
    std::vector<std::string> arguments{
        "--source",     file, "--duration-s", std::to_string(scan.seconds), "--crystals", "scatter",
        "--efficiency", "1",  "--seed",       std::to_string(seed)};
    if (!scan.water.empty()) arguments.insert(arguments.end(), {"--scatter", "0", "--object", scan.water});
    return simulated_run(site, arguments, run);
}

struct FoundTracers {
    TwoTracers found;
    double ratio;     ///< relative to the true one
    double counting;  ///< its relative error by counting triples
};

/// F-18 beside the other, 12 mm apart.
FoundTracers separate(const TracerScan& scan, unsigned seed) {
    const Site site({{"energy", scan.pair_window},
                     {"coincidence", {{"min_module_difference", 2}, {"multiples_policy", "RemoveMultiples"}}},
                     {"gammas",
                      {{"lower_keV", scan.gamma_window["lower_keV"]},
                       {"upper_keV", scan.gamma_window["upper_keV"]},
                       {"before_ns", 2},
                       {"after_ns", 2},
                       {"policy", "nearest"},
                       {"delay_ns", 400}}}},
                    std::filesystem::path(PETACQ_SOURCE_DIR) / "config" / "examples" / scan.scanner, 4);
    const std::string both = record_scan(
        site, scan, {cylinder(-6, 4, scan.mbq, scan.nuclide), cylinder(6, 4, f18_mbq, "F-18")}, "both", seed);
    const std::string alone = record_scan(
        site, scan, json::array({cylinder(0, 12, 1.5 * scan.mbq, scan.nuclide)}), "alone", seed + 1);
    const std::filesystem::path output = site.directory() / "tracers";
    std::vector<std::string> arguments{"tracers",     both,   "--output",        output.string(),
                                       "--nuclide",   "F-18", "--gamma-nuclide", scan.nuclide,
                                       "--gamma-run", alone,  "--voxel-mm",      "2",
                                       "--smooth-mm", "0",    "--iterations",    "4"};
    if (!scan.water.empty()) arguments.insert(arguments.end(), {"--attenuation", scan.water});
    const Outcome made = run_program(PETLM_PROGRAM, arguments);
    INFO(made.out << made.err);
    REQUIRE(made.status == 0);
    const json document = json::parse(read_file(output / "tracers.json"));
    const json& triples = document["triples"];
    const double counting =
        std::hypot(triples["error_of_true_per_pair"].get<double>() / triples["true_per_pair"].get<double>(),
                   document["gammas"]["relative_error"].get<double>());
    const TwoTracers found = two_tracers_in(output, "F-18", scan.nuclide);
    const double ratio = found.ratio / (scan.mbq * scan.positrons / (f18_mbq * f18_positrons));
    std::cout << scan.scanner << ' ' << scan.nuclide << (scan.water.empty() ? "" : " in water")
              << ": F-18 in the other " << found.first_in_other << ", the other in F-18 "
              << found.other_in_first << ", ratio " << ratio << ", counting " << counting << ", triples "
              << triples["coincident"] << std::endl;
    return {found, ratio, counting};
}

/// Checks the mean of `scans` scans: each tracer has at most `limit` of the other's activity in the cylinder
/// of the other, and the ratio of both is true within `limit`. The error of counting comes on top.
void check_tracers(const TracerScan& scan, double limit, unsigned scans = 1) {
    double first_in_other = 0;
    double other_in_first = 0;
    double ratio = 0;
    double counting = 0;
    for (unsigned i = 0; i < scans; ++i) {
        const FoundTracers one = separate(scan, 21 + 2 * i);
        first_in_other += one.found.first_in_other / scans;
        other_in_first += one.found.other_in_first / scans;
        ratio += one.ratio / scans;
        counting = std::hypot(counting, one.counting / scans);
    }
    CAPTURE(first_in_other, other_in_first, ratio, counting);
    CHECK(std::abs(first_in_other) < limit + 3 * counting);
    CHECK(std::abs(other_in_first) < limit + counting);
    CHECK(ratio == Approx(1).margin(limit + 3 * counting));
}

const json wide = {{"lower_keV", 350}, {"upper_keV", 650}};
const json narrow = {{"lower_keV", 440}, {"upper_keV", 570}};

}  // namespace

TEST_CASE("two tracers: Sc-44 in small", "[e2e][tracers][.long]") {
    check_tracers(
        {"small.scanner.json", "Sc-44", 0.9428, 2, 40, wide, {{"lower_keV", 900}, {"upper_keV", 1300}}},
        0.01);
}

TEST_CASE("two tracers: Sc-44 in mouse", "[e2e][tracers][.table]") {
    check_tracers(
        {"mouse.scanner.json", "Sc-44", 0.9428, 2, 30, wide, {{"lower_keV", 900}, {"upper_keV", 1300}}},
        0.01);
}

TEST_CASE("two tracers: Na-22 in small", "[e2e][tracers][.table]") {
    check_tracers(
        {"small.scanner.json", "Na-22", 0.9035, 2, 40, wide, {{"lower_keV", 1020}, {"upper_keV", 1450}}},
        0.01);
}

TEST_CASE("two tracers: Na-22 in mouse", "[e2e][tracers][.table]") {
    check_tracers(
        {"mouse.scanner.json", "Na-22", 0.9035, 2, 30, wide, {{"lower_keV", 1020}, {"upper_keV", 1450}}},
        0.01);
}

TEST_CASE("two tracers: I-124 in small, the mean of three scans", "[e2e][tracers][.table]") {
    check_tracers(
        {"small.scanner.json", "I-124", 0.227, 4, 60, narrow, {{"lower_keV", 575}, {"upper_keV", 680}}}, 0.01,
        3);
}

TEST_CASE("two tracers: Sc-44 in small with water", "[e2e][tracers][.table]") {
    check_tracers({"small.scanner.json",
                   "Sc-44",
                   0.9428,
                   2,
                   40,
                   wide,
                   {{"lower_keV", 900}, {"upper_keV", 1300}},
                   "0,0,0,13,40"},
                  0.01);
}

TEST_CASE("two tracers: I-124 in mouse", "[e2e][tracers][.table]") {
    check_tracers(
        {"mouse.scanner.json", "I-124", 0.227, 4, 40, narrow, {{"lower_keV", 575}, {"upper_keV", 680}}},
        0.01);
}

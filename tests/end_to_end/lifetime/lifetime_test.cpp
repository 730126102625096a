// petlm lifetime on simulated runs, against the truth of the simulator.
#include <cmath>

#include "tests/end_to_end/lifetime/simulated.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

json figures(const std::string& run, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"lifetime", run, "--output", run + "/lifetime", "--force"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_program(PETLM_PROGRAM, arguments);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.status == 0);
    return json::parse(read_file(run + "/lifetime/results.json"))["figures"];
}

void check(const json& figures, const char* name, double truth, double systematic) {
    INFO(name << ' ' << figures[name].dump() << ", truth " << truth);
    const double error = figures[name]["error"];
    CHECK(error > 0);
    CHECK(std::abs(figures[name]["value"].get<double>() - truth) < 3.5 * error + systematic);
}

json tissue(const std::string& nuclide, double mbq, double ortho_ns) {
    return {{"type", "point"},
            {"position_mm", {6, 3, 2}},
            {"activity_MBq", mbq},
            {"nuclide", nuclide},
            {"positronium",
             {{{"fraction", 0.28}, {"ns", ortho_ns}},
              {{"fraction", 0.1}, {"ns", 0.125}},
              {{"fraction", 0.62}, {"ns", 0.39}}}}};
}

}  // namespace

TEST_CASE("lifetimes of a simulated run are those of the simulator", "[e2e][lifetime]") {
    const Site site = site_with_triples("small.scanner.json", 1157);
    const std::string run = record(site, tissue("Sc-44", 1, 1.8), 1.2, "depth");
    const std::string region = "source=sphere:6,3,2,4";
    const json found = figures(run, {"--region", region, "--tof", "283"});
    check(found, "ortho_ns", 1.8, 0);
    check(found, "ortho_intensity", 0.28, 0);
    check(found, "mean_ns", 0.28 * 1.8 + 0.1 * 0.125 + 0.62 * 0.39, 0.005);
    check(found, "resolution_fwhm_ns", 0.2 * std::sqrt(1.5), 0.01);
    CHECK(found["ortho_ns"]["error"] < 0.08);
    // Held values are taken as they are.
    const json held = figures(run, {"--region", region, "--resolution-ps", "250", "--offset-ps", "2"});
    CHECK(held["resolution_fwhm_ns"]["value"] == Approx(0.25));
    CHECK(held["resolution_fwhm_ns"]["error"].is_null());
    CHECK(held["offset_ns"]["value"] == Approx(0.002));

    const auto refused = [&](std::vector<std::string> arguments, const std::string& words) {
        arguments.insert(arguments.end(), {"--output", run + "/refused"});
        const Outcome outcome = run_program(PETLM_PROGRAM, arguments);
        INFO(outcome.err);
        CHECK(outcome.status != 0);
        CHECK(contains(outcome.err, words));
        CHECK_FALSE(std::filesystem::exists(run + "/refused/results.json"));
    };
    refused({"lifetime", run + "/coincidences.plm"}, "expected triples");
    refused({"lifetime", run, "--para-ns", "0.5"}, "0 < para < direct");
    refused({"lifetime", run, "--region", "outside=sphere:500,0,0,3"}, "outside");
}

TEST_CASE("lifetimes are those of the simulator where chance adds many gammas and pairs", "[e2e][lifetime]") {
    const Site site = site_with_triples("small.scanner.json", 1157);
    const std::string run = record(site, tissue("Sc-44", 20, 1.8), 0.1, "depth");
    const json found = figures(run, {"--tof", "283"});
    check(found, "ortho_ns", 1.8, 0);
    check(found, "ortho_intensity", 0.28, 0);
    CHECK(found["ortho_intensity"]["error"] < 0.01);
}

TEST_CASE("a million triples of three nuclides and two scanners: ortho-positronium within 20 ps",
          "[.long][e2e][lifetime]") {
    struct Case {
        std::string scanner;
        std::string nuclide;
        double gamma_keV;
        double mbq;
        double ortho_ns;
    };
    for (const Case& c : {Case{"small.scanner.json", "Sc-44", 1157, 1, 1.8},
                          Case{"small.scanner.json", "Na-22", 1275, 1, 2.3},
                          Case{"scanners/box.scanner.json", "Mn-52", 1434, 3, 1.6}}) {
        INFO(c.scanner << ' ' << c.nuclide);
        const Site site = site_with_triples(c.scanner, c.gamma_keV);
        const std::string run = record(site, tissue(c.nuclide, c.mbq, c.ortho_ns), 60, "depth");
        const json found = figures(run, {"--region", "source=sphere:6,3,2,4", "--tof", "283"});
        check(found, "ortho_ns", c.ortho_ns, 0.01);
        check(found, "ortho_intensity", 0.28, 0.005);
        CHECK(std::abs(found["ortho_ns"]["value"].get<double>() - c.ortho_ns) < 0.02);
    }
}

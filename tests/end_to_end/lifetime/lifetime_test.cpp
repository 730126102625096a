// petlm lifetime on simulated runs, against the truth of the simulator.
#include <cmath>
#include <iostream>

#include "tests/end_to_end/lifetime/simulated.hpp"
#include "tests/support/catch.hpp"
#include "tools/nifti/nifti.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

json results_of(const std::string& run, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"lifetime", run, "--output", run + "/lifetime", "--force"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_program(PETLM_PROGRAM, arguments);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.status == 0);
    return json::parse(read_file(run + "/lifetime/results.json"));
}
json figures(const std::string& run, const std::vector<std::string>& more) {
    return results_of(run, more)["figures"];
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

/// Writes a mask that marks a ball, with voxels of 1 mm, and gives the name of its file.
std::string ball_mask(const Site& site, const config::Vector3& middle, double radius_mm) {
    nifti::Volume mask;
    mask.n = {40, 40, 40};
    mask.step = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    mask.first = {-19.5, -19.5, -19.5};
    for (std::size_t z = 0; z < 40; ++z) {
        for (std::size_t y = 0; y < 40; ++y) {
            for (std::size_t x = 0; x < 40; ++x) {
                const config::Vector3 at = mask.at(x, y, z);
                const double distance = std::hypot(at[0] - middle[0], at[1] - middle[1], at[2] - middle[2]);
                mask.values.push_back(distance < radius_mm ? 1.0F : 0.0F);
            }
        }
    }
    const std::string file = (site.directory() / "ball.nii").string();
    write_file(file,
               nifti::header(mask, "a ball") + std::string(reinterpret_cast<const char*>(mask.values.data()),
                                                           mask.values.size() * sizeof(float)));
    return file;
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

    // A mask of the same ball.
    const std::string mask = ball_mask(site, {6, 3, 2}, 4);
    const json of_mask = figures(run, {"--region", "source=" + mask, "--tof", "283"});
    check(of_mask, "ortho_ns", 1.8, 0);
    check(of_mask, "ortho_intensity", 0.28, 0);
    CHECK(std::abs(of_mask["ortho_ns"]["value"].get<double>() - found["ortho_ns"]["value"].get<double>()) <
          0.3 * found["ortho_ns"]["error"].get<double>());

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

    // The gammas lie in the spectrum of the singles.
    const json histograms = json::parse(read_file(run + "/histograms.json"));
    REQUIRE(histograms["energy_bin_keV"] == 8);
    const auto counted = [&](double from_keV, double to_keV) {
        std::int64_t sum = 0;
        for (const json& module : histograms["energy"]) {
            for (std::size_t bin = 0; bin < 255; ++bin) {
                const double energy = static_cast<double>(bin) * 8;
                if (energy + 8 > from_keV && energy < to_keV) sum += module.at(bin).get<std::int64_t>();
            }
        }
        return sum;
    };
    const json ledger = site.run_json("a")["ledger"]["gammas"];
    const auto gammas = ledger["used"].get<std::int64_t>() + ledger["unused"].get<std::int64_t>();
    CHECK(gammas > 1000);
    CHECK(counted(0.86 * 1157, 1.15 * 1157) >= gammas);
    CHECK(counted(0.86 * 1157 + 8, 1.15 * 1157 - 8) <= gammas);
}

TEST_CASE("few triples: what they do not tell of lifetimes is unknown", "[e2e][lifetime]") {
    const Site site = site_with_triples("small.scanner.json", 1157);
    const std::string run = record(site, tissue("Sc-44", 1, 1.8), 0.008, "depth");
    // Beside such a resolution they say nothing of a mean below 1 ns.
    const std::string output = run + "/lifetime";
    const Outcome outcome =
        run_program(PETLM_PROGRAM, {"lifetime", run, "--output", output, "--resolution-ps", "4000"});
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.status == 0);
    CHECK(contains(outcome.out, "mean lifetime: unknown"));
    CHECK(contains(outcome.out, "an error larger than itself or its range"));
    const json figures = json::parse(read_file(output + "/results.json"))["figures"];
    INFO(figures.dump(1));
    CHECK(figures["mean_ns"]["value"].is_null());
    CHECK(figures["mean_ns"]["error"].is_null());
    CHECK(figures["offset_ns"]["error"] < 1);
}

TEST_CASE("lifetimes of a scanner that turns", "[e2e][lifetime]") {
    const Site site = site_with_triples("scanners/two-heads.scanner.json", 1157);
    const std::string run = record(site, tissue("Sc-44", 2, 1.8), 1, "depth", {"--rotation", "60"});
    const json results = results_of(run, {"--region", "source=sphere:6,3,2,4", "--tof", "283"});
    const json& found = results["figures"];
    check(found, "ortho_ns", 1.8, 0);
    check(found, "ortho_intensity", 0.28, 0);
    CHECK(found["ortho_ns"]["error"] < 0.15);
    // On lines that do not turn with the scanner most would miss the source.
    const json ledger = site.run_json("a")["ledger"];
    CHECK(results["tables"]["regions"]["rows"][0][1] > 0.95 * ledger["gammas"]["triples"].get<double>());
}

namespace {

struct LifetimeCase {
    std::string name;
    std::string scanner;
    std::string nuclide;
    double gamma_keV;
    double mbq;
    double ortho_ns;
    double seconds = 60;
    bool water = false;  ///< around the source; photons scatter in it and in crystals
};

void check_million_triples(const LifetimeCase& c) {
    const Site site = site_with_triples(c.scanner, c.gamma_keV, "all", c.water ? 4 : 200);
    const std::string run =
        record(site, tissue(c.nuclide, c.mbq, c.ortho_ns), c.seconds, c.water ? "scatter" : "depth",
               c.water ? std::vector<std::string>{"--object", "0,0,0,12,40"} : std::vector<std::string>{});
    const json results = results_of(run, {"--region", "source=sphere:6,3,2,4", "--tof", "283"});
    const json& found = results["figures"];
    const double triples = results["tables"]["regions"]["rows"][0][1];
    std::cout << c.name << ": " << triples << " triples, ortho " << found["ortho_ns"].dump() << ", truth "
              << c.ortho_ns << std::endl;
    CHECK(triples > 0.9e6);
    check(found, "ortho_ns", c.ortho_ns, 0.01);
    check(found, "ortho_intensity", 0.28, 0.005);
    CHECK(std::abs(found["ortho_ns"]["value"].get<double>() - c.ortho_ns) < 0.02);
}

}  // namespace

TEST_CASE("a million triples: ortho-positronium within 20 ps", "[.long][e2e][lifetime]") {
    check_million_triples({"small Sc-44", small_scanner, "Sc-44", 1157, 1, 1.8});
}

TEST_CASE("a million triples of three nuclides and two scanners: ortho-positronium within 20 ps",
          "[.table][e2e][lifetime]") {
    for (const LifetimeCase& c : {LifetimeCase{"small Na-22", small_scanner, "Na-22", 1275, 1, 2.3},
                                  LifetimeCase{"small Mn-52", small_scanner, "Mn-52", 1434, 3, 1.6},
                                  LifetimeCase{"box Sc-44", box_scanner, "Sc-44", 1157, 1, 1.8},
                                  LifetimeCase{"box Na-22", box_scanner, "Na-22", 1275, 1, 2.3},
                                  LifetimeCase{"box Mn-52", box_scanner, "Mn-52", 1434, 3, 1.6}}) {
        DYNAMIC_SECTION(c.name) {
            check_million_triples(c);
        }
    }
}

TEST_CASE("a million triples of a source in water, with Compton scatter in crystals: within 20 ps",
          "[.table][e2e][lifetime]") {
    for (const LifetimeCase& c :
         {LifetimeCase{"small Sc-44 water", small_scanner, "Sc-44", 1157, 3, 1.8, 370, true},
          LifetimeCase{"box Na-22 water", box_scanner, "Na-22", 1275, 3, 2.3, 260, true}}) {
        DYNAMIC_SECTION(c.name) {
            check_million_triples(c);
        }
    }
}

// petlm nema on runs: what it says of input that it cannot use.
#include <algorithm>

#include "tests/support/temporary_directory.hpp"
#include "tests/tools/petlm/support.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

Outcome nema(const std::string& arguments) {
    return petacq::test::run_petlm("nema " + arguments);
}

}  // namespace

TEST_CASE("petlm nema: runs and options that cannot be used are refused, and nothing is left behind",
          "[nema]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", point_source(export_scanner(), {3, 4, 5}, 3000));
    write_run(directory / "empty", {});
    const std::string run = quoted(directory / "run");
    const std::string to = " -o" + quoted(directory / "out");
    const auto refusal = [&](const std::string& arguments, int status) {
        const Outcome outcome = nema(arguments + to);
        CAPTURE(arguments, outcome.out);
        CHECK(outcome.status == status);
        CHECK_FALSE(std::filesystem::exists(directory / "out"));
        return outcome.out;
    };
    CHECK_THAT(refusal("sensitivity" + run, 64), contains("--activity-mbq"));
    CHECK_THAT(refusal("sensitivity --activity-mbq 1,2" + run, 64), contains("expected 1 value or 1"));
    CHECK_THAT(refusal("sensitivity --activity-mbq 0" + run, 64), contains("above 0"));
    CHECK_THAT(refusal("sensitivity --activity-mbq nan" + run, 64), contains("at least 0"));
    CHECK_THAT(refusal("sensitivity --activity-mbq 1 --nuclide X-1" + run, 64), contains("F-18"));
    CHECK_THAT(refusal("sensitivity --activity-mbq 1 --by-position 3" + run, 65), contains("tags"));
    CHECK_THAT(refusal("sensitivity --activity-mbq 1" + quoted(directory / "empty"), 1),
               contains("no coincidences"));
    CHECK_THAT(refusal("sensitivity --activity-mbq 1" + quoted(directory / "none"), 74), contains("none"));
    CHECK_THAT(refusal("scatter" + run, 1), contains("seconds"));
    CHECK_THAT(refusal("count-rate" + run, 1), contains("seconds"));
    CHECK_THAT(refusal("count-rate --phantom monkey" + run, 64), contains("do not fit"));
    CHECK_THAT(refusal("count-rate --phantom cat" + run, 64), contains("phantom"));
    CHECK_THAT(refusal("resolution --depth-mm 99" + run, 64), contains("--depth-mm"));
    CHECK(nema("").status == 64);
}

TEST_CASE("petlm nema: the activity comes from what the operator said, and earlier results are kept",
          "[nema]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", point_source(export_scanner(), {3, 4, 5}, 3000));
    auto run = nlohmann::json::parse(read_file(directory / "run" / "run.json"));
    run["start_utc"] = "2026-11-20T18:45:00Z";
    run["operator"] = {{"nuclide", "F-18"},
                       {"half_life_s", 6584.04},
                       {"branching_ratio", 0.9686},
                       {"activity_MBq", 1},
                       {"assay_utc", "2026-11-20T16:55:15.96Z"},
                       {"bed_mm", -12.5}};
    write_file(directory / "run" / "run.json", run.dump());
    const std::string command = "sensitivity" + quoted(directory / "run") + "-o" + quoted(directory / "out");
    REQUIRE(nema(command).status == 0);
    const auto json = nlohmann::json::parse(read_file(directory / "out" / "results.json"));
    const auto& table = json["tables"]["positions"];
    const auto& row = table["rows"][0];
    CHECK(table["columns"][1] == "bed_mm");
    CHECK(row[1] == -12.5);
    CHECK(row[2].get<double>() == Approx(5).margin(0.3));  // z of the source
    CHECK(row[4].get<double>() == Approx(0.5).epsilon(1e-4));
    CHECK(json["figures"]["central_percent"]["value"].get<double>() ==
          Approx(100 * json["figures"]["central_cps_per_Bq"]["value"].get<double>() / 0.9686));
    CHECK_THAT(json["deviations"].dump(), contains("not Na-22"));
    CHECK_THAT(json["warnings"].dump(), contains("at least 10000"));
    const std::string csv = read_file(directory / "out" / "positions.csv");
    CHECK(csv.substr(0, 12) == "run,bed_mm,z");
    CHECK_THAT(read_file(directory / "out" / "report.html"), contains("NEMA NU 4-2008"));
    CHECK_THAT(nema(command).out, contains("--force"));
    CHECK(nema(command).status == 64);
    CHECK(nema(command + "--force").status == 0);
}

TEST_CASE("petlm nema: a point is where it is in any scanner, and phantoms must fit into its bore",
          "[nema]") {
    const TemporaryDirectory directory;
    const auto number = [](const nlohmann::json& results, const char* table, const char* column) {
        const auto& columns = results["tables"][table]["columns"];
        const auto at = std::find(columns.begin(), columns.end(), column) - columns.begin();
        return results["tables"][table]["rows"][0][static_cast<std::size_t>(at)].get<double>();
    };
    for (const std::string name : {"box", "phoswich", "unequal-blocks"}) {
        INFO(name);
        const config::Scanner scanner =
            config::load_scanner(PETACQ_SOURCE_DIR "/config/examples/scanners/" + name + ".scanner.json");
        const std::string run = quoted(directory / name);
        write_run(directory / name, point_source(scanner, {5, -2, 3}, 20'000), scanner);
        const auto out = directory / (name + "-resolution");
        const Outcome outcome = nema("resolution --depth-mm 0" + run + "-o" + quoted(out));
        INFO(outcome.out);
        REQUIRE(outcome.status == 0);
        const auto results = nlohmann::json::parse(read_file(out / "results.json"));
        CHECK(number(results, "widths", "x_mm") == Approx(5).margin(0.5));
        CHECK(number(results, "widths", "y_mm") == Approx(-2).margin(0.5));
        CHECK(number(results, "widths", "z_mm") == Approx(3).margin(0.8));
        for (const char* const width : {"radial_fwhm_mm", "tangential_fwhm_mm"}) {
            CHECK(number(results, "widths", width) > 0.4);
            CHECK(number(results, "widths", width) < 2.5);
        }
        const auto sensitivity = directory / (name + "-sensitivity");
        REQUIRE(nema("sensitivity --activity-mbq 1 --depth-mm 0" + run + "-o" + quoted(sensitivity)).status ==
                0);
        const auto table =
            nlohmann::json::parse(read_file(sensitivity / "results.json"))["tables"]["positions"];
        CHECK(table["rows"][0][2].get<double>() == Approx(3).margin(0.3));
        // 100 mm and twice 8 mm do not fit between panels 56 mm apart, nor into a ring of 64 or 72 mm.
        const Outcome refused = nema("count-rate --phantom monkey" + run + "-o" + quoted(directory / "none"));
        CHECK(refused.status == 64);
        CHECK_THAT(refused.out, contains("do not fit into the bore"));
    }
    // Lines of a scanner this large cannot be counted one by one.
    const config::Scanner large = config::scanner_from_json(nlohmann::json::parse(R"({
        "name": "large", "tick_ps": 10, "position_size": 64,
        "module_types": [{"name": "block", "layers": [{"y": {"count": 21, "pitch_mm": 1}, "z": {"count": 21, "pitch_mm": 1}, "length_mm": 10}]}],
        "modules": [{"type": "block", "ring": {"count": 40, "radius_mm": 150}}]})"));
    write_run(directory / "large", point_source(large, {0, 0, 0}, 300), large);
    const Outcome refused =
        nema("resolution --depth-mm 0" + quoted(directory / "large") + "-o" + quoted(directory / "none"));
    CHECK(refused.status == 1);
    CHECK_THAT(refused.out, contains("at most 16384 crystals"));
}

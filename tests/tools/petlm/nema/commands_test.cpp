// petlm nema on runs: what it says of input that it cannot use.
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

// petlm import treats declared facts as if the file held them, and refuses those that the file or its records
// contradict.
#include "daemon/coverage/coverage.hpp"
#include "daemon/coverage/unknown.hpp"
#include "daemon/system/utc.hpp"
#include "tests/tools/petlm/import/support.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

constexpr const char* pairs_columns = "time=t,crystal_a=a,crystal_b=b,dt=d,energy_a=e,energy_b=f,kind=k";
constexpr const char* pairs_table =
    "t,a,b,d,e,f,k\n"
    "1000,1,1500,200,400,511,prompt\n"
    "2000,2,1501,256,650,350,delayed\n"
    "63999999999,3,1502,0,511,511,prompt\n";
/// 4 ns are 256 ticks of 15.625 ps, and 1 s is 64e9 of them.
constexpr const char* all_declared =
    " --window-ns 4 --delay-ns 100 --lower-kev 350 --upper-kev 650 --policy RemoveMultiples --window-mode "
    "single --max-multiplicity 5 --min-module-difference 1 --max-ring-difference 20 --duration-s 1 "
    "--start-utc "
    "2026-11-20T18:45:00Z";

class Table {
  public:
    Table(const std::string& text, const std::string& columns) : columns_(columns) {
        write_file(directory / "table.csv", text);
    }
    Outcome import(const std::string& name, const std::string& options) const {
        return imported("csv", directory / "table.csv", scanner_file(directory), directory / name,
                        "--columns " + columns_ + " " + options);
    }
    void refuses(const std::string& options, int status, const std::string& expected) const {
        const Outcome outcome = import("refused", options);
        CAPTURE(options, outcome.out);
        CHECK(outcome.status == status);
        CHECK_THAT(outcome.out, contains(expected));
        CHECK(!std::filesystem::exists(directory / "refused"));
    }
    TemporaryDirectory directory;

  private:
    std::string columns_;
};

nlohmann::json run_json_of(const std::filesystem::path& run) {
    return nlohmann::json::parse(read_file(run / "run.json"));
}

}  // namespace

TEST_CASE("import: declared rules and times are those of the run", "[petlm][import]") {
    const Table table(pairs_table, pairs_columns);
    const Outcome outcome = table.import("run", all_declared);
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    CHECK_THAT(outcome.out, contains("table.csv does not tell delayeds") && !contains("rules"));
    const auto run = run_json_of(table.directory / "run");
    const daemon::Coverage coverage = daemon::coverage_of_run(run);
    CHECK(coverage.unknown == std::vector<std::string>{"delayeds"});  // how they were found
    REQUIRE(coverage.rules.coincidence);
    CHECK(coverage.rules.coincidence->window_ticks == 256);
    CHECK(coverage.rules.coincidence->delay_ticks == 6400);
    CHECK(coverage.rules.coincidence->max_multiplicity == 5);
    CHECK(coverage.rules.coincidence->min_module_difference == 1);
    CHECK(coverage.rules.coincidence->max_ring_difference == 20);
    REQUIRE(coverage.rules.energy);
    CHECK(coverage.rules.energy->filter);
    CHECK(coverage.rules.energy->lower_keV == 350);
    CHECK(coverage.rules.energy->upper_keV == 650);
    CHECK(coverage.seconds() == Approx(1));
    CHECK(coverage.reference_ticks() == 0);
    CHECK(coverage.utc_of(64'000'000'000) == daemon::utc_time("2026-11-20T18:45:01Z"));
    // One second of a half-life of one: the mean of 2^-t.
    CHECK(coverage.decay_factor(1) == Approx(std::log(2.0) / 0.5));
    CHECK(run["configuration"]["coincidence"]["window_ticks"] == 256);
    CHECK(run["configuration"]["energy"]["lower_keV"] == 350);
    CHECK(run["start_utc"] == "2026-11-20T18:45:00.000Z");
    CHECK(coverage_in(table.directory / "run" / "coincidences.plm") == run["coverage"]);

    const Outcome info = run_petlm("info" + quoted(table.directory / "run"));
    CAPTURE(info.out);
    CHECK_THAT(info.out, contains("said at the import: not in the file") &&
                             contains("\"window_ticks\":256") && contains("\"delay_ticks\":6400") &&
                             contains("\"duration_s\":1") && contains("covers       1 s"));
    // Others need to know the window.
    CHECK(exported("petsird", table.directory / "run", table.directory / "run.petsird").status == 0);
    CHECK(run_petlm("verify" + quoted(table.directory / "run")).status == 0);
}

TEST_CASE("import: what is not declared stays unknown", "[petlm][import]") {
    const Table table(pairs_table, pairs_columns);
    const auto unknown_with = [&](const std::string& name, const std::string& options) {
        const Outcome outcome = table.import(name, options);
        CAPTURE(outcome.out);
        REQUIRE(outcome.status == 0);
        return daemon::coverage_of_run(run_json_of(table.directory / name));
    };
    using Phrases = std::vector<std::string>;
    const std::string times = "when its records were taken, and for how long";
    const daemon::Coverage window = unknown_with("window", "--window-ticks 256 --delay-ticks 6400");
    CHECK(window.unknown == Phrases{times, "the time of day", "window_mode", "multiples_policy",
                                    "max_multiplicity", "min_module_difference", "max_ring_difference",
                                    "delayeds", "the energy window"});
    CHECK(!window.rules.energy);
    CHECK(!window.intervals);
    const daemon::Coverage delayeds =
        unknown_with("delayeds", "--window-ticks 256 --delay-ticks 6400 --delayed-rule delayed_window");
    CHECK(daemon::tells(delayeds, "delayeds"));
    CHECK(delayeds.rules.coincidence->delayeds == config::DelayedRule::delayed_window);
    const daemon::Coverage energies = unknown_with("energies", "--lower-kev 350 --upper-kev 650");
    CHECK(energies.unknown == Phrases{times, "the time of day", "the rules by which its pairs were found"});
    CHECK(!energies.rules.coincidence);
    const daemon::Coverage later = unknown_with("later", "--duration-s 1 --start-ticks 900");
    CHECK(later.unknown == Phrases{"the time of day", "the rules by which its records were made"});
    CHECK(later.span().start == 900);
    const auto without = run_json_of(table.directory / "later")["imported"];
    CHECK(without["declared"] == nlohmann::json{{"duration_s", 1.0}, {"start_ticks", 900}});
}

TEST_CASE("import: records outside of what is declared are refused", "[petlm][import]") {
    const Table table(pairs_table, pairs_columns);
    table.refuses("--window-ticks 255 --delay-ticks 6400", 1,
                  "256 ticks apart, more than the declared window; expected at most 255");
    table.refuses("--window-ticks 256", 1,
                  "a delayed pair, and no delay is declared; expected --delay-ticks");
    table.refuses("--lower-kev 351 --upper-kev 650", 1, "a record of 350 keV");
    table.refuses("--lower-kev 350 --upper-kev 649", 1, "a record of 650 keV");
    table.refuses("--duration-s 0.999", 1, "a record at tick 63999999999, outside of the times");
    table.refuses("--duration-s 1 --start-ticks 1001", 1, "a record at tick 1000, outside of the times");
    // What is not known of the records cannot contradict.
    const Table bare("t,a,b\n1000,1,1500\n", "time=t,crystal_a=a,crystal_b=b");
    CHECK(bare.import("run", "--window-ticks 256 --lower-kev 350 --upper-kev 650").status == 0);
}

TEST_CASE("import: declarations that cannot be true are refused", "[petlm][import]") {
    const Table table(pairs_table, pairs_columns);
    const auto refuses = [&](const std::string& options, const std::string& expected) {
        table.refuses(options, 64, expected);
    };
    refuses("--delay-ns 100", "expected --window-ticks or --window-ns, too");
    refuses("--window-ticks 256 --delayed-rule delayed_window", "--delayed-rule: expected --delay-ticks");
    refuses("--window-ticks 256 --max-multiplicity 1", "max_multiplicity");
    refuses("--gamma-policy all", "--gamma-policy: the file holds no triples");
    refuses("--window-ticks 256 --delay-ticks 256", "expected a longer one than the window, 256");
    refuses("--lower-kev 350", "expected both");
    refuses("--lower-kev 650 --upper-kev 350", "expected both, the first one lower");
    refuses("--start-ticks 5", "expected --duration-s, too");
    refuses("--start-utc 2026-11-20T18:45:00Z", "expected --duration-s, too");
    refuses("--duration-s 1 --start-utc yesterday", "--start-utc yesterday: expected a time such as");
    refuses("--duration-s 0", "--duration-s: expected a number of s above 0");
    refuses("--duration-s long", "--duration-s");
    refuses("--window-ns -1", "--window-ns");
    refuses("--window-ns 1e9", "expected at most 2147483647");
    refuses("--window-ticks 256 --delay-ticks 6400 --min-module-difference 1000", "min_module_difference");
    const Table singles("t,c,e\n1000,1,511\n1001,1500,400\n", "time=t,crystal=c,energy=e");
    singles.refuses("--window-ns 4", 64, "petlm resort finds their pairs by such rules");
}

TEST_CASE("import: a declared energy window of singles is that of petlm resort", "[petlm][import]") {
    const Table table("t,c,e\n1000,1,511\n1001,1500,400\n", "time=t,crystal=c,energy=e");
    REQUIRE(table.import("run", "--lower-kev 350 --upper-kev 650 --duration-s 1").status == 0);
    CHECK_THAT(run_json_of(table.directory / "run")["coverage"].dump(), !contains("energy window"));
    const auto resorted = [&](const std::string& options) {
        return run_petlm("resort" + quoted(table.directory / "run") + "--window-ticks 256 --backend cpu -o" +
                         quoted(table.directory / "pairs.plm") + options);
    };
    CHECK_THAT(resorted(" --lower-kev 300").out, contains("the run has saved singles from 350 to 650 keV"));
    REQUIRE(resorted("").status == 0);
    const daemon::Coverage pairs = daemon::coverage_from_json(coverage_in(table.directory / "pairs.plm"));
    CHECK(pairs.seconds() == Approx(1));
    CHECK(pairs.rules.energy->upper_keV == 650);
}

TEST_CASE("import: the rules of gammas are declared of triples", "[petlm][import]") {
    const TemporaryDirectory directory;
    write_file(
        directory / "triples.csv",
        "kind,time,dt,crystal_a,crystal_b,energy_a,energy_b,gamma,gamma_dt,gamma_crystal,gamma_energy\n"
        "prompt,1000,200,1,1500,511,511,coincident,-64,7,900\n"
        "prompt,2000,100,2,1501,511,511,delayed,128,8,1300\n");
    const auto import = [&](const std::string& name, const std::string& options) {
        return imported("csv", directory / "triples.csv", scanner_file(directory), directory / name, options);
    };
    const std::string gammas = " --gamma-lower-kev 900 --gamma-upper-kev 1300 --gamma-after-ns 2";
    const Outcome all = import(
        "run", gammas + " --gamma-before-ns 1 --gamma-delay-ns 100 --gamma-policy nearest --window-ns 4");
    CAPTURE(all.out);
    REQUIRE(all.status == 0);
    const daemon::Coverage coverage = daemon::coverage_of_run(run_json_of(directory / "run"));
    CHECK(daemon::tells(coverage, "the rules by which its gammas were found"));
    REQUIRE(coverage.rules.gammas);
    CHECK(coverage.rules.gammas->lower_keV == 900);
    CHECK(coverage.rules.gammas->before_ticks == 64);
    CHECK(coverage.rules.gammas->after_ticks == 128);
    CHECK(coverage.rules.gammas->delay_ticks == 6400);
    CHECK(coverage.rules.gammas->policy == config::GammaPolicy::nearest);
    CHECK(run_json_of(directory / "run")["configuration"]["gammas"]["upper_keV"] == 1300);
    CHECK(run_petlm("verify" + quoted(directory / "run")).status == 0);

    // A file of pairs does not tell the rules of gammas, and they stay unknown.
    REQUIRE(import("pairs", " --window-ns 4").status == 0);
    CHECK_FALSE(daemon::tells(daemon::coverage_of_run(run_json_of(directory / "pairs")),
                              "the rules by which its gammas were found"));
    REQUIRE(import("open", gammas + " --gamma-before-ns 1 --gamma-delay-ns 100").status == 0);
    CHECK(daemon::coverage_of_run(run_json_of(directory / "open")).unknown ==
          std::vector<std::string>{"when its records were taken, and for how long", "the time of day",
                                   "the rules by which its pairs were found", "gammas.policy",
                                   "the energy window"});

    for (const auto& [options, status, expected] : std::vector<std::tuple<std::string, int, std::string>>{
             {gammas + " --gamma-before-ticks 63 --gamma-delay-ns 100", 1,
              "a gamma -64 ticks after its pair"},
             {gammas + " --gamma-before-ticks 64", 1, "a delayed gamma, and no delay of gammas is declared"},
             {" --gamma-lower-kev 901 --gamma-upper-kev 1300 --gamma-before-ns 1 --gamma-after-ns 2", 1,
              "a gamma of 900 keV"},
             {gammas, 64, "expected --gamma-before-ticks, too"},
             {gammas + " --gamma-before-ns 1 --gamma-delay-ticks 192", 64, "expected more than the times"}}) {
        const Outcome outcome = import("refused", options);
        CAPTURE(options, outcome.out);
        CHECK(outcome.status == status);
        CHECK_THAT(outcome.out, contains(expected));
    }
}

TEST_CASE("import: the declared source decays as that of an operator", "[petlm][import]") {
    const Table table(pairs_table, pairs_columns);
    const std::string times = " --duration-s 1 --start-utc 2026-11-20T18:45:00Z";
    // Measured one half-life of F-18 before the start.
    const std::string source = " --nuclide F-18 --activity-mbq 10 --assay 2026-11-20T16:55:15.96Z";
    const Outcome outcome = table.import("run", times + source);
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    const auto run = run_json_of(table.directory / "run");
    const daemon::Coverage coverage = daemon::coverage_of_run(run);
    REQUIRE(coverage.activity);
    CHECK(coverage.activity->nuclide == "F-18");
    CHECK(coverage.activity_MBq_at(0).value() == Approx(5));
    CHECK(run["operator"]["activity_at_start_MBq"].get<double>() == Approx(5));
    CHECK(run["operator"]["assay_utc"] == "2026-11-20T16:55:15.960Z");
    CHECK(run["imported"]["declared"]["activity_MBq"] == 10);
    // So does a nuclide that the table lacks, in a file alone.
    REQUIRE(table.import("own.plm", " --nuclide Fe-52 --half-life-s 29790 --branching-ratio 0.55").status ==
            0);
    const daemon::Coverage own = daemon::coverage_from_json(coverage_in(table.directory / "own.plm"));
    CHECK(own.activity->half_life_s == 29790);
    CHECK_FALSE(own.activity->activity_MBq);

    const auto refuses = [&](const std::string& options, const std::string& expected) {
        table.refuses(options, 64, expected);
    };
    refuses(source, "--activity-mbq: the file does not tell the time of day");
    refuses(times + " --activity-mbq 10 --assay 2026-11-20T16:55:15Z", "--activity-mbq: expected --nuclide");
    refuses(times + " --nuclide F-18 --activity-mbq 10", "--activity-mbq: expected --assay");
    refuses(times + " --nuclide F-18 --assay 2026-11-20T16:55:15Z", "--assay: expected --activity-mbq");
    refuses(times + " --nuclide F-18 --activity-mbq 10 --assay yesterday", "--assay: expected a time");
    refuses(times + " --nuclide F-18 --activity-mbq 0 --assay 2026-11-20T16:55:15Z",
            "--activity-mbq: expected a number from 1e-9");
    refuses(" --nuclide F-19", "--nuclide: expected one of");
    refuses(" --nuclide F-18 --half-life-s 6000", "--half-life-s: expected that of F-18");
    refuses(" --half-life-s 6000", "--half-life-s: expected --nuclide");
}

TEST_CASE("import: an activity is added to the nuclide that a file tells", "[petlm][import]") {
    const Table table(pairs_table, pairs_columns);
    const std::string times = " --duration-s 1 --start-utc 2026-11-20T18:45:00Z";
    REQUIRE(table.import("named", times + " --nuclide F-18").status == 0);
    const auto file = table.directory / "named.h5";
    REQUIRE(exported("hdf5", table.directory / "named", file).status == 0);
    const auto import = [&](const std::filesystem::path& from, const std::string& name,
                            const std::string& options) {
        return run_petlm("import --format hdf5" + quoted(from) + "-o" + quoted(table.directory / name) +
                         options);
    };
    const std::string activity = " --activity-mbq 10 --assay 2026-11-20T18:45:00Z";
    const Outcome added = import(file, "known", activity);
    CAPTURE(added.out);
    REQUIRE(added.status == 0);
    const auto run = run_json_of(table.directory / "known");
    CHECK(daemon::coverage_of_run(run).activity_MBq_at(0).value() == Approx(10));
    CHECK(run["operator"]["nuclide"] == "F-18");
    CHECK(run["imported"]["declared"] ==
          nlohmann::json{{"activity_MBq", 10.0}, {"assay_utc", "2026-11-20T18:45:00.000Z"}});
    CHECK_THAT(import(file, "refused", " --nuclide Ga-68").out,
               contains("--nuclide Ga-68: table.csv tells F-18"));
    // The same at another time is no contradiction.
    const auto again = table.directory / "known.h5";
    REQUIRE(exported("hdf5", table.directory / "known", again).status == 0);
    CHECK(import(again, "same", " --activity-mbq 20 --assay 2026-11-20T16:55:15.96Z").status == 0);
    const Outcome other = import(again, "refused", " --activity-mbq 21 --assay 2026-11-20T16:55:15.96Z");
    CHECK(other.status == 64);
    CHECK_THAT(other.out, contains("tells 20 MBq at 2026-11-20T16:55:15.960Z"));
}

TEST_CASE("import: a file that tells rules and times contradicts others", "[petlm][import]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", point_source(export_scanner(), {1, 2, 3}, 50));
    const auto file = directory / "a.h5";
    REQUIRE(exported("hdf5", directory / "run", file).status == 0);
    const auto import = [&](const std::string& options) {
        return run_petlm("import --format hdf5" + quoted(file) + "--force -o" + quoted(directory / "out") +
                         options);
    };
    for (const auto& [options, told] : std::vector<std::pair<std::string, std::string>>{
             {" --window-ticks 299", "--window-ticks 299: " + file.string() + " tells window_ticks = 300"},
             {" --delay-ns 100", "--delay-ns 6400: " + file.string() + " tells delay_ticks = 10000"},
             {" --policy TakeAllGoods", "tells multiples_policy = RemoveMultiples"},
             {" --lower-kev 1 --upper-kev 2", "--lower-kev 1, --upper-kev 2: " + file.string() + " tells"},
             {" --duration-s 100", "--duration-s 100: " + file.string() + " tells"},
             {" --start-ticks 1", "tells that it begins at tick 5000000000"},
             {" --start-utc 2026-11-20T18:45:01Z", "tells 2026-11-20T18:45:00.123Z"}}) {
        const Outcome outcome = import(options);
        CAPTURE(options, outcome.out);
        CHECK(outcome.status == 64);
        CHECK_THAT(outcome.out, contains(told) && contains("expected that, or nothing"));
    }
    const Outcome same = import(" --window-ticks 300 --start-utc 2026-11-20T19:45:00.123+01:00");
    CAPTURE(same.out);
    CHECK(same.status == 0);
    CHECK(!run_json_of(directory / "out")["imported"].contains("declared"));
}

TEST_CASE("import: the time of day is that of the start which the file tells", "[petlm][import]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", point_source(export_scanner(), {1, 2, 3}, 50));
    REQUIRE(exported("castor", directory / "run", directory / "castor").status == 0);
    const Outcome outcome = imported("castor", directory / "castor" / "prompts.cdh", scanner_file(directory),
                                     directory / "out", "--start-utc 2026-11-20T18:45:00Z");
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    const daemon::Coverage coverage = daemon::coverage_of_run(run_json_of(directory / "out"));
    REQUIRE(coverage.intervals);
    CHECK(coverage.utc_of(coverage.span().start) == daemon::utc_time("2026-11-20T18:45:00Z"));
    CHECK_THAT(daemon::to_json(coverage)["unknown"].dump(), !contains("the time of day"));
}

// What a file does not tell is not used as if it were measured.
#include <hdf5.h>

#include <filesystem>
#include <functional>

#include "daemon/coverage/coverage.hpp"
#include "daemon/coverage/unknown.hpp"
#include "tests/tools/petlm/import/support.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

std::filesystem::path imported_table(const TemporaryDirectory& directory, const std::string& name,
                                     const std::string& text, const std::string& columns) {
    const auto scanner = scanner_file(directory);
    write_file(directory / (name + ".csv"), text);
    const Outcome outcome =
        imported("csv", directory / (name + ".csv"), scanner, directory / name, "--columns " + columns);
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    return directory / name;
}

/// Imports an export of pairs after this change, with which petlm import has to refuse it.
Outcome import_of_changed_hdf5(const std::function<void(hid_t file)>& change) {
    const TemporaryDirectory directory;
    write_run(directory / "run", point_source(export_scanner(), {1, 2, 3}, 20));
    const auto file = directory / "a.h5";
    REQUIRE(exported("hdf5", directory / "run", file).status == 0);
    const hid_t opened = H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    REQUIRE(opened >= 0);
    change(opened);
    REQUIRE(H5Fclose(opened) >= 0);
    const Outcome outcome = imported("hdf5", file, scanner_file(directory), directory / "out.plm");
    CHECK(!std::filesystem::exists(directory / "out.plm"));
    return outcome;
}

}  // namespace

TEST_CASE("import: records without time differences have no time of flight", "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto run =
        imported_table(directory, "run", "t,a,b\n100,1,1500\n200,2,1501\n", "time=t,crystal_a=a,crystal_b=b");
    const auto refused = [](const Outcome& outcome, const std::string& option) {
        CAPTURE(outcome.out);
        CHECK(outcome.status == 64);
        CHECK_THAT(outcome.out, contains(option) && contains("does not tell the time between the photons"));
    };
    refused(exported("castor", run, directory / "tof", "--tof-resolution-ps 566"), "--tof-resolution-ps");
    CHECK(!std::filesystem::exists(directory / "tof"));
    refused(run_petlm("image" + quoted(run) + "--tof 400 -o" + quoted(directory / "image.nii")), "--tof");
    const Outcome without = exported("castor", run, directory / "castor");
    CAPTURE(without.out);
    CHECK(without.status == 0);
    const auto with_dt = imported_table(directory, "with_dt", "t,a,b,d\n100,1,1500,3\n200,2,1501,4\n",
                                        "time=t,crystal_a=a,crystal_b=b,dt=d");
    CHECK(exported("castor", with_dt, directory / "tof", "--tof-resolution-ps 566").status == 0);
}

TEST_CASE("import: PETSIRD claims no time differences and energies that the records do not tell",
          "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto run = imported_table(directory, "run", "t,a,b\n100,1,1500\n200,2,1501\n",
                                    "time=t,crystal_a=a,crystal_b=b --window-ticks 300 --duration-s 0.001");
    const Outcome outcome =
        exported("petsird", run, directory / "a.petsird", "--tof-bin-ticks 1 --energy-bins 4");
    CAPTURE(outcome.out);
    CHECK(outcome.status == 0);
    CHECK_THAT(outcome.out, contains("time differences: not known, one TOF bin has all") &&
                                contains("energies: not known of any photon, the one bin has all"));
    const auto unknown_rules =
        imported_table(directory, "rules", "t,a,b\n100,1,1500\n", "time=t,crystal_a=a,crystal_b=b");
    const Outcome refused = exported("petsird", unknown_rules, directory / "b.petsird");
    CHECK(refused.status != 0);
    CHECK_THAT(refused.out, contains("petlm import may declare it"));
}

TEST_CASE("import: tables leave out what the records do not tell, and come back so", "[petlm][import]") {
    const TemporaryDirectory directory;
    struct Case {
        std::string name;
        std::string text;
        std::string columns;
        std::string csv;
        std::vector<std::string> left_out;  ///< of the fields in HDF5
        bool dt;
        bool energies;
    };
    const std::string pairs = "time=t,crystal_a=a,crystal_b=b";
    for (const Case& c :
         std::vector<Case>{{"neither",
                            "t,a,b\n100,1,1500\n200,2,1501\n",
                            pairs,
                            "kind,time,crystal_a,crystal_b\nprompt,100,1,1500\nprompt,200,2,1501\n",
                            {"coincidences/dt", "coincidences/energy_a", "coincidences/energy_b"},
                            false,
                            false},
                           {"no-dt",
                            "t,a,b,e,f\n100,1,1500,511,400\n",
                            pairs + ",energy_a=e,energy_b=f",
                            "kind,time,crystal_a,crystal_b,energy_a,energy_b\nprompt,100,1,1500,511,400\n",
                            {"coincidences/dt"},
                            false,
                            true},
                           {"no-energies",
                            "t,a,b,d\n100,1,1500,7\n",
                            pairs + ",dt=d",
                            "kind,time,dt,crystal_a,crystal_b\nprompt,100,7,1,1500\n",
                            {"coincidences/energy_a", "coincidences/energy_b"},
                            true,
                            false},
                           {"singles",
                            "t,c\n100,1\n",
                            "time=t,crystal=c",
                            "time,crystal\n100,1\n",
                            {"singles/energy"},
                            true,
                            false}}) {
        const auto run = imported_table(directory, c.name, c.text, c.columns);
        const auto records = run / (c.name == "singles" ? "singles.plm" : "coincidences.plm");
        const auto csv = directory / (c.name + ".out.csv");
        const auto hdf5 = directory / (c.name + ".h5");
        const Outcome written = exported("csv", records, csv);
        CAPTURE(c.name, written.out);
        REQUIRE(written.status == 0);
        CHECK(read_file(csv) == c.csv);
        CHECK_THAT(read_file(csv.string() + ".README.txt"),
                   contains("since it is not known") || contains("since they are not known"));
        CHECK(run_petlm("dump" + quoted(records)).out == c.csv);
        const std::string json = run_petlm("dump --json" + quoted(records)).out;
        CHECK((json.find("\"dt\"") != std::string::npos) == (c.dt && c.name != "singles"));
        CHECK((json.find("energy") != std::string::npos) == c.energies);
        REQUIRE(exported("hdf5", records, hdf5).status == 0);
        const std::string how = read_file(hdf5.string() + ".README.txt");
        CHECK((how.find("There is no data set of dt: not known") != std::string::npos) == !c.dt);
        CHECK((how.find("There is no data set of energies: not known") != std::string::npos) == !c.energies);
        const hid_t file = H5Fopen(hdf5.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
        REQUIRE(file >= 0);
        for (const std::string& field : c.left_out)
            CHECK(H5Lexists(file, field.c_str(), H5P_DEFAULT) == 0);
        REQUIRE(H5Fclose(file) >= 0);
        for (const auto& [format, from] : {std::pair{"csv", csv}, {"hdf5", hdf5}}) {
            const auto back = directory / (c.name + "." + format + ".plm");
            const Outcome outcome = imported(format, from, directory / "scanner.json", back);
            CAPTURE(format, outcome.out);
            REQUIRE(outcome.status == 0);
            CHECK(run_petlm("dump" + quoted(back)).out == c.csv);
            const daemon::Coverage coverage = daemon::coverage_from_json(coverage_in(back));
            CHECK(daemon::tells(coverage, daemon::unknown_dt) == c.dt);
            CHECK(daemon::tells(coverage, daemon::unknown_energies) == c.energies);
        }
    }
}

TEST_CASE("import: hdf5 with the energy of one photon of a pair is refused", "[petlm][import]") {
    const Outcome outcome = import_of_changed_hdf5(
        [](hid_t file) { REQUIRE(H5Ldelete(file, "coincidences/energy_b", H5P_DEFAULT) >= 0); });
    CAPTURE(outcome.out);
    CHECK(outcome.status == 1);
    CHECK_THAT(outcome.out, contains("coincidences/energy_b: no such data set; expected all of energy_a, "
                                     "energy_b, or none"));
}

TEST_CASE("import: exports that cannot leave out a field say that it is not known", "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto run =
        imported_table(directory, "run", "t,a,b\n100,1,1500\n200,2,1501\n", "time=t,crystal_a=a,crystal_b=b");
    const auto file = directory / "pairs.bin";
    const Outcome coinstruct = exported("coinstruct", run, file);
    CAPTURE(coinstruct.out);
    REQUIRE(coinstruct.status == 0);
    for (const std::string& said : {coinstruct.out, read_file(file.string() + ".README.txt")}) {
        CHECK_THAT(said, contains("both photons of a pair have its time") && contains("the energies are 0") &&
                             !contains("The earlier photon"));
    }
    // The text beside the file says it to an import.
    const auto back = directory / "back.plm";
    REQUIRE(imported("coinstruct", file, directory / "scanner.json", back).status == 0);
    const daemon::Coverage coverage = daemon::coverage_from_json(coverage_in(back));
    CHECK_FALSE(daemon::tells(coverage, daemon::unknown_dt));
    CHECK_FALSE(daemon::tells(coverage, daemon::unknown_energies));
    const Outcome castor = exported("castor", run, directory / "castor");
    CAPTURE(castor.out);
    REQUIRE(castor.status == 0);
    CHECK_THAT(castor.out, contains("no TOF was written, since the time between the photons") &&
                               !contains("--tof-resolution-ps"));
    CHECK_THAT(read_file(directory / "castor" / "prompts.cdh"), !contains("TOF"));
}

TEST_CASE("import: singles without energies have no energy windows and no winners", "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto run = imported_table(directory, "run", "t,c\n100,1\n101,1500\n", "time=t,crystal=c");
    const auto resorted = [&](const std::string& options) {
        return run_petlm("resort" + quoted(run) + "--window-ticks 300 --backend cpu --force -o" +
                         quoted(directory / "pairs.plm") + options);
    };
    for (const std::string options : {" --lower-kev 400", " --upper-kev 600", " --policy TakeWinnerOfGoods",
                                      " --policy TakeWinnerIfIsGood", " --policy TakeWinnerIfAllAreGoods"}) {
        const Outcome outcome = resorted(options);
        CAPTURE(options, outcome.out);
        CHECK(outcome.status == 64);
        CHECK_THAT(outcome.out, contains("do not tell the energies"));
    }
    for (const std::string options : {"", " --policy TakeAllGoods", " --policy TakeIfOnlyOneGood"}) {
        const Outcome outcome = resorted(options);
        CAPTURE(options, outcome.out);
        CHECK(outcome.status == 0);
        CHECK(read_coincidences(directory / "pairs.plm").size() == 1);
    }
    const auto with =
        imported_table(directory, "with", "t,c,e\n100,1,511\n101,1500,511\n", "time=t,crystal=c,energy=e");
    CHECK(run_petlm("resort" + quoted(with) +
                    "--window-ticks 300 --backend cpu --lower-kev 400 --policy TakeWinnerOfGoods -o" +
                    quoted(directory / "with.plm"))
              .status == 0);
}

TEST_CASE("import: any of several runs without energies is named", "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto with =
        imported_table(directory, "with", "t,c,e\n100,1,511\n101,1500,511\n", "time=t,crystal=c,energy=e");
    const auto without = imported_table(directory, "without", "t,c\n100,2\n101,1501\n", "time=t,crystal=c");
    const auto resorted = [&](const std::string& options) {
        return run_petlm("resort" + quoted(with) + quoted(without) +
                         "--window-ticks 300 --backend cpu --force -o" + quoted(directory / "pairs") +
                         options);
    };
    for (const std::string options :
         {" --lower-kev 400", " --policy TakeWinnerOfGoods", " --lower-kev 400 --part 1/2"}) {
        const Outcome outcome =
            options.ends_with("/2")
                ? run_petlm("resort" + quoted(with) + quoted(without) +
                            "--window-ticks 300 --backend cpu -o" + quoted(directory / "parts") + options)
                : resorted(options);
        CAPTURE(options, outcome.out);
        CHECK(outcome.status == 64);
        CHECK_THAT(outcome.out, contains("the singles of " + without.string() + " do not tell the energies"));
    }
    const Outcome outcome = resorted("");
    CAPTURE(outcome.out);
    CHECK(outcome.status == 0);
}

TEST_CASE("import: hdf5 with records of two kinds is refused", "[petlm][import]") {
    const Outcome outcome = import_of_changed_hdf5([](hid_t file) {
        REQUIRE(H5Lcreate_hard(file, "coincidences", file, "triples", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    });
    CAPTURE(outcome.out);
    CHECK(outcome.status == 1);
    CHECK_THAT(outcome.out, contains("holds coincidences and triples"));
}

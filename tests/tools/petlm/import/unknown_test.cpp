// What a file does not tell is not used as if it were measured.
#include <hdf5.h>

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
    const TemporaryDirectory directory;
    write_run(directory / "run", point_source(export_scanner(), {1, 2, 3}, 20));
    const auto file = directory / "a.h5";
    REQUIRE(exported("hdf5", directory / "run", file).status == 0);
    const hid_t opened = H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    REQUIRE(opened >= 0);
    REQUIRE(H5Lcreate_hard(opened, "coincidences", opened, "triples", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    REQUIRE(H5Fclose(opened) >= 0);
    const Outcome outcome = imported("hdf5", file, scanner_file(directory), directory / "out.plm");
    CAPTURE(outcome.out);
    CHECK(outcome.status == 1);
    CHECK_THAT(outcome.out, contains("holds coincidences and triples"));
    CHECK(!std::filesystem::exists(directory / "out.plm"));
}

// What a file does not tell is not used as if it were measured.
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

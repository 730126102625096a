// Imports over what is there already.
#include "tests/tools/petlm/import/support.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("import: --force leaves nothing of the run before", "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto scanner = scanner_file(directory);
    const auto out = directory / "run";
    write_file(directory / "pairs.csv", "t,a,b\n100,1,2\n");
    write_file(directory / "singles.csv", "t,c\n100,1\n200,2\n");
    REQUIRE(imported("csv", directory / "pairs.csv", scanner, out, "--columns time=t,crystal_a=a,crystal_b=b")
                .status == 0);
    for (const char* name : {"tags.plm", "triples-0001.plm", "triples-0002.plm", "seconds.plm", "ledger.csv",
                             "histograms.json", "of_mine.plm", "notes.txt"})
        write_file(out / name, "old");
    const auto again = [&](const std::string& options) {
        return imported("csv", directory / "singles.csv", scanner, out,
                        "--columns time=t,crystal=c" + options);
    };
    const Outcome refused = again("");
    CHECK(refused.status == 64);
    CHECK_THAT(refused.out, contains("use --force"));
    CHECK(std::filesystem::exists(out / "coincidences.plm"));
    const Outcome outcome = again(" --force");
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    // The import leaves files alone that do not belong to a run.
    CHECK(names_in(out) == std::set<std::string>{"notes.txt", "of_mine.plm", "run.json", "singles.plm"});
    CHECK(read_records<gpu::Single>(out, daemon::RecordKind::singles).size() == 2);
    CHECK(run_petlm("verify" + quoted(out / "singles.plm")).status == 0);
}

TEST_CASE("import: --force does not replace a run that was acquired", "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto scanner = scanner_file(directory);
    const auto records = point_source(export_scanner(), {1, 2, 3}, 20);
    write_run(directory / "run", records);
    write_file(directory / "singles.csv", "t,c\n100,1\n");
    const auto before = names_in(directory / "run");
    const auto refused = [&] {
        const Outcome outcome = imported("csv", directory / "singles.csv", scanner, directory / "run",
                                         "--columns time=t,crystal=c --force");
        CAPTURE(outcome.out);
        CHECK(outcome.status == 64);
        CHECK_THAT(outcome.out, contains("a run that was not imported"));
        CHECK(same(read_coincidences(directory / "run" / "coincidences.plm"), records));
    };
    refused();
    CHECK(names_in(directory / "run") == before);
    std::filesystem::remove(directory / "run" / "run.json");
    refused();
}

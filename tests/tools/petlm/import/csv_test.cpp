// Tables as programs write them.
#include "tests/tools/petlm/import/support.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("import: tables may have a byte order mark, and names in a comment", "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto scanner = scanner_file(directory);
    const gpu::RecordVector<gpu::Single> expected = {{100, 7, 0}, {200, 8, 0}};
    const auto check = [&](const std::string& text, const std::string& options) {
        write_file(directory / "a.csv", text);
        const Outcome outcome =
            imported("csv", directory / "a.csv", scanner, directory / "a.plm", options + " --force");
        CAPTURE(text, options, outcome.out);
        REQUIRE(outcome.status == 0);
        CHECK(same_bytes(read_records<gpu::Single>(directory / "a.plm", daemon::RecordKind::singles),
                         expected));
    };
    const std::string mark = "\xEF\xBB\xBF";
    check(mark + "t,id\n100,7\n200,8\n", "--columns time=t,crystal=id");
    check(mark + "100,7\n200,8\n", "--columns time=#1,crystal=#2");
    check(mark + "time,crystal,energy\n100,7,0\n200,8,0\n", "");
    check("# t,id\n100,7\n200,8\n", "--columns time=t,crystal=id");
    check("#t,id\n100,7\n200,8\n", "--columns time=#1,crystal=#2");
    check("t,id,x,x\n100,7,1,2\n200,8,1,2\n", "--columns time=t,crystal=id");
}

TEST_CASE("import: a name of two columns is refused", "[petlm][import]") {
    const TemporaryDirectory directory;
    write_file(directory / "a.csv", "t,id,t\n100,7,3\n");
    const Outcome outcome = imported("csv", directory / "a.csv", scanner_file(directory), directory / "a.plm",
                                     "--columns time=t,crystal=id");
    CAPTURE(outcome.out);
    CHECK(outcome.status == 64);
    CHECK_THAT(outcome.out, contains("column 't' of time: the file has two of that name"));
}

TEST_CASE("import: ticks that a file does not state are said, and compared with its README.txt",
          "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto scanner = scanner_file(directory);
    config::Scanner slower = export_scanner();
    slower.tick_ps = 31.25;
    write_file(directory / "slower.json", config::to_json(slower).dump());
    write_run(directory / "run", point_source(export_scanner(), {1, 2, 3}, 20));
    const std::string said = "times are taken as ticks of 15.625 ps";
    for (const std::string format : {"csv", "coinstruct"}) {
        const auto file = directory / ("a." + format);
        const auto readme = file.string() + ".README.txt";
        REQUIRE(exported(format, directory / "run", file).status == 0);
        const auto import_with = [&](const std::filesystem::path& description) {
            return imported(format, file, description, directory / "a.plm", " --force");
        };
        CAPTURE(format);
        const Outcome agrees = import_with(scanner);
        CHECK(agrees.status == 0);
        CHECK_THAT(agrees.out, !contains(said));
        const Outcome differs = import_with(directory / "slower.json");
        CHECK(differs.status == 1);
        CHECK_THAT(differs.out, contains("README.txt: tick_ps: 15.625; expected that of the scanner"));
        std::filesystem::remove(readme);
        const Outcome unsaid = import_with(scanner);
        CHECK(unsaid.status == 0);
        CHECK_THAT(unsaid.out, contains(said));
    }
    write_file(directory / "t.csv", "t,id\n100,7\n");
    const auto table = [&](const std::string& columns) {
        return imported("csv", directory / "t.csv", scanner, directory / "t.plm",
                        "--force --columns " + columns)
            .out;
    };
    CHECK_THAT(table("time=t,crystal=id"), contains(said));
    CHECK_THAT(table("time=t:ns,crystal=id"), !contains(said));
}

// petlm plot: bad input and existing outputs.
#include <unistd.h>

#include "tests/tools/petlm/plot/support.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("unusable input is not plotted, and nothing is left", "[petlm][plot]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    write_run(run, wild_records(2000));
    const auto file = run / "coincidences.plm";
    const std::string good = read_file(file);
    const auto refused = [&](int status, const std::string& why, const std::string& options = "") {
        const Outcome outcome = plotted(run, options);
        CAPTURE(outcome.out);
        CHECK(outcome.status == status);
        CHECK_THAT(outcome.out, contains(why));
        CHECK(!std::filesystem::exists(run / "plot"));
    };
    std::filesystem::resize_file(file, good.size() / 2);
    refused(1, "petlm recover");
    std::string bad = good;
    bad[good.size() / 2] = static_cast<char>(bad[good.size() / 2] ^ 4);
    write_file(file, bad);
    refused(1, "coincidences.plm");
    write_file(file, "no list-mode at all");
    refused(65, "not a list-mode file");
    write_file(file, good);
    auto beyond = wild_records(10);
    beyond[5].crystal_b = export_scanner().geometry.crystal_count();
    std::filesystem::remove(file);
    write_plm(file, beyond, file_description(export_scanner()));
    refused(1, "record 5");
    write_file(file, good);

    write_file(run / "histograms.json", "{\"crystals\": [1, 2], \"energy\": []}");
    refused(1, "histograms.json: crystals: expected");
    write_file(run / "histograms.json", "[");
    refused(1, "histograms.json");
    std::filesystem::remove(run / "histograms.json");

    const Outcome alone = plotted(file);
    CHECK(alone.status == 64);
    CHECK_THAT(alone.out, contains("--output"));
    CHECK(plotted(file, " -o" + quoted(directory / "of-file")).status == 0);
    std::filesystem::remove(run / "run.json");
    refused(64, "--scanner");
    CHECK(plotted(directory / "nowhere").status == 74);
}

TEST_CASE(
    "existing outputs are found before the records are read, and --force leaves no file of an earlier report",
    "[petlm][plot]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    write_run(run, wild_records(500));
    const std::string ledger = "from_ticks,to_ticks,frames.late\n5000000000,6000000000,0\n";
    write_file(run / "ledger.csv", ledger);
    nlohmann::json histograms = {{"crystals", std::vector<int>(export_scanner().geometry.crystal_count(), 2)},
                                 {"energy_bin_keV", 4},
                                 {"energy", std::vector<std::vector<int>>(export_scanner().geometry.bdm_count,
                                                                          std::vector<int>(256, 1))}};
    write_file(run / "histograms.json", histograms.dump());
    REQUIRE(plotted(run).status == 0);
    auto all = files_of(pictures_without_ledger());
    all.insert({"energy-singles.png", "energy-singles.csv", "loss.png"});
    CHECK(names_in(run / "plot") == all);
    std::filesystem::remove(run / "ledger.csv");
    std::filesystem::remove(run / "histograms.json");
    write_file(run / "plot" / "mine.txt", "mine");
    REQUIRE(plotted(run, " --force").status == 0);
    auto fewer = files_of(pictures_without_ledger());
    fewer.insert("mine.txt");
    CHECK(names_in(run / "plot") == fewer);

    // The existing output is reported, not the damage that only reading finds.
    std::string bad = read_file(run / "coincidences.plm");
    bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 4);
    write_file(run / "coincidences.plm", bad);
    const Outcome again = plotted(run);
    CHECK(again.status == 64);
    CHECK_THAT(again.out, contains("report.html exists"));
    CHECK(plotted(run, " --force").status == 1);
    CHECK(names_in(run / "plot") == fewer);
    // A picture that this run would not get is in the way, too.
    std::filesystem::create_directory(directory / "other");
    write_file(directory / "other" / "loss.png", "of another run");
    CHECK_THAT(plotted(run, " -o" + quoted(directory / "other")).out, contains("loss.png exists"));
    write_file(directory / "file", "");
    CHECK(plotted(run, " -o" + quoted(directory / "file")).status == 64);
    if (::geteuid() == 0) return;  // root may write everywhere
    std::filesystem::permissions(run / "plot",
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    CHECK_THAT(plotted(run, " --force").out, contains("cannot be written to"));
    std::filesystem::permissions(run / "plot", std::filesystem::perms::owner_all);
}

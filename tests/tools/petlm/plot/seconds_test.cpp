// The seconds of a run in the pictures.
#include <fmt/format.h>

#include "tests/daemon/seconds/support.hpp"
#include "tests/tools/petlm/plot/support.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

/// A run with `count` seconds in a scanner whose tick is a millisecond.
std::filesystem::path run_with_seconds(const TemporaryDirectory& directory, std::uint64_t count) {
    auto run = directory / "run";
    write_run(run, wild_records(200));
    write_seconds(run / "seconds.plm", count);
    return run;
}

}  // namespace

TEST_CASE("randoms and lost pairs over time are drawn from the seconds", "[petlm][plot]") {
    const TemporaryDirectory directory;
    const auto run = run_with_seconds(directory, 5);
    const Outcome outcome = plotted(run);
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    auto expected = pictures_without_ledger();
    expected.insert({"corrections", "temperature"});
    CHECK(names_in(run / "plot") == files_of(expected));
    const Table table = table_of(run / "plot" / "corrections.csv");
    REQUIRE(table.at("prompts").size() == 5);
    for (std::uint64_t i = 0; i < 5; ++i) {
        const daemon::Second second = second_number(i);
        CHECK(table.at("from_ticks")[i] == static_cast<double>(second.range.start));
        CHECK(table.at("prompts")[i] == static_cast<double>(second.sums.counts.prompts));
        CHECK(table.at("weighted_delayeds")[i] ==
              Approx(static_cast<double>(second.sums.counts.delayeds) * second.delayeds_weight));
        CHECK(table.at("randoms")[i] == second.randoms.total);
        CHECK(table.at("pile_up")[i] == Approx(second.pile_up));
        CHECK(table.at("dead_time")[i] == Approx(0.077));
    }
    const Table temperature = table_of(run / "plot" / "temperature.csv");
    REQUIRE(temperature.at("mean").size() == 5);
    for (const char* column : {"mean", "hottest", "coldest"})
        CHECK(temperature.at(column)[3] == 24.5);
    const std::string html = read_file(run / "plot" / "report.html");
    check_html(html);
    CHECK_THAT(html, contains("id=\"corrections\"") && contains("randoms, noise-free estimate"));
    // Not that of the delayeds, which need their weight.
    const double fraction = sum(table.at("randoms")) / sum(table.at("prompts"));
    CHECK_THAT(html, contains("randoms fraction</th><td class=\"number\">" +
                              fmt::format("{:.3g} %</td>", 100 * fraction)));
}

TEST_CASE("the seconds of a long run are drawn together", "[petlm][plot]") {
    const TemporaryDirectory directory;
    const auto run = run_with_seconds(directory, 1001);
    REQUIRE(plotted(run).status == 0);
    const Table table = table_of(run / "plot" / "corrections.csv");
    CHECK(table.at("from_ticks").size() == 334);
    double prompts = 0;
    for (std::uint64_t i = 0; i < 1001; ++i)
        prompts += static_cast<double>(second_number(i).sums.counts.prompts);
    CHECK(sum(table.at("prompts")) == prompts);
}

TEST_CASE("seconds that are damaged are reported and drawn as far as they go", "[petlm][plot]") {
    const TemporaryDirectory directory;
    const auto run = run_with_seconds(directory, 5);
    const std::string bytes = read_file(run / "seconds.plm");
    write_file(run / "seconds.plm", bytes.substr(0, bytes.size() - 400));
    const Outcome cut = plotted(run, " 2>&1");
    CHECK(cut.status == 0);
    CHECK_THAT(cut.out, contains("seconds.plm: truncated"));
    CHECK(table_of(run / "plot" / "corrections.csv").at("prompts").size() == 4);
    write_file(run / "seconds.plm", "nothing");
    CHECK_THAT(plotted(run, " --force 2>&1").out, contains("not a list-mode file"));
    CHECK_FALSE(names_in(run / "plot").contains("corrections.csv"));
}

TEST_CASE("a reference needs the seconds of a run", "[petlm][plot]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", wild_records(20));
    const Outcome none = plotted(directory / "run", " --reference /none 2>&1");
    CHECK(none.status != 0);
    CHECK_THAT(none.out, contains("has no seconds.plm to compare with a reference"));
    const Outcome file = plotted(directory / "run" / "coincidences.plm",
                                 " --reference /none -o" + quoted(directory / "pictures") + " 2>&1");
    CHECK(file.status == 64);
    CHECK_THAT(file.out, contains("--reference: "));
}

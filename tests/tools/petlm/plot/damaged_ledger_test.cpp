// petlm plot shows the rows of ledger.csv that survive a power cut, and says where they end.
#include "tests/tools/petlm/plot/support.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

const std::string head = "from_ticks,to_ticks,datagrams.accepted,datagrams.lost,frames.late\n";
const std::string two_rows = "5000000000,6000000000,90,10,0\n6000000000,7000000000,100,0,50\n";

/// A run with a ledger.csv, and its report.
class Run {
  public:
    Run() { write_run(path, wild_records(500)); }
    /// The smallest pictures: drawing them takes most of the time, and only the report matters here.
    [[nodiscard]] Outcome plot() const { return plotted(path, " --force --png-width 200"); }
    [[nodiscard]] std::string report() const { return read_file(path / "plot" / "report.html"); }
    [[nodiscard]] bool shows_loss() const { return std::filesystem::exists(path / "plot" / "loss.png"); }

  private:
    const TemporaryDirectory directory_;

  public:
    const std::filesystem::path path = directory_ / "run";
    const std::filesystem::path ledger = path / "ledger.csv";
};

/// The message occurs on the terminal and in the report, and `shown` tells whether the two rows do.
void check_damage(const Run& run, const std::string& text, const std::string& message, bool shown) {
    write_file(run.ledger, text);
    const Outcome outcome = run.plot();
    CAPTURE(text.substr(0, 300), outcome.out);
    REQUIRE(outcome.status == 0);
    const std::string html = run.report();
    check_html(html);
    CHECK_THAT(outcome.out, contains("ledger.csv"));
    CHECK_THAT(outcome.out, contains(message));
    CHECK_THAT(html, contains(message));
    CHECK(run.shows_loss() == shown);
    CHECK(contains(html, "10 of 200") == shown);
    CHECK(contains(html, " before the end of the data") == shown);
}

}  // namespace

TEST_CASE("petlm plot shows the rows of ledger.csv before the damage of a power cut", "[petlm][plot]") {
    const Run run;
    // Runs with rows precede those without, to see that the pictures of an earlier report disappear.
    const std::string rows = head + two_rows;
    check_damage(run, rows + std::string(4096, '\0'), "line 4", true);
    check_damage(run, rows + std::string(1 << 20, '\0') + "\n", "line 4", true);
    check_damage(run, rows + "7000000000,8000000000,1", "after line 3", true);
    check_damage(run, rows + "7000000000,8000000000,1,2,x\n8000000000,9000000000,1,2,3\n", "line 4", true);
    check_damage(run, rows + "7100000000,8000000000,1,2,3\n", "line 4", true);
    check_damage(run, rows + "7000000000,8000000000,9223372036854775807,2,3\n", "line 4", true);
    check_damage(run, head + "0,100,3\n", "line 2", false);
    check_damage(run, "", "no whole line", false);
    check_damage(run, std::string(4096, '\0'), "no whole line", false);
    check_damage(run, "something else\n", "first line", false);
}

TEST_CASE("petlm plot: an empty field in a damaged line of ledger.csv does not make the counter unknown",
          "[petlm][plot]") {
    const Run run;
    write_file(run.ledger, head + two_rows + "7000000000,8000000000,1,,x\n");
    REQUIRE(run.plot().status == 0);
    CHECK_FALSE(contains(run.report(), "cannot be known"));
}

TEST_CASE("petlm plot: a ledger.csv that cannot be read is reported, a missing one is not", "[petlm][plot]") {
    const Run run;
    std::filesystem::create_symlink("ledger.csv", run.ledger);
    const Outcome loop = run.plot();
    CHECK(loop.status == 0);
    CHECK_THAT(loop.out, contains("ledger.csv cannot be read: Too many levels"));
    std::filesystem::remove(run.ledger);
    std::filesystem::create_directory(run.ledger);
    CHECK_THAT(run.plot().out, contains("ledger.csv cannot be read"));
    std::filesystem::remove(run.ledger);
    CHECK_FALSE(contains(run.plot().out, "ledger.csv"));
}

TEST_CASE("petlm plot: very many rows of no length in ledger.csv", "[petlm][plot]") {
    const Run run;
    std::string text = head;
    for (int i = 0; i < 30'000; ++i)
        text += "5000000000,5000000000,1,0,0\n";
    write_file(run.ledger, text);
    CHECK(run.plot().status == 0);
    CHECK_THAT(run.report(), contains("0 of 30,000"));
}

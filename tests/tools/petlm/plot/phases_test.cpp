// petlm plot: rates by phase of a run with triggers or gates.
#include "tests/tools/petlm/plot/support.hpp"
#include "tests/tools/petlm/tags.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("the report shows rates by phase for every channel with cycles", "[petlm][plot][tags]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    const auto records = wild_records(3000);
    write_run(run, records);
    const std::uint64_t period = 3'200'000'000;  // 50 ms
    std::vector<gpu::Tag> tags;
    for (std::uint32_t i = 0; i < 20; ++i) {
        const std::uint64_t start = run_start + i * period;
        tags.push_back(tag(start, 2, gpu::TagKind::trigger, i + 1));
        tags.push_back(tag(start + period / 4, 7, gpu::TagKind::gate, 1));
        tags.push_back(tag(start + period / 2, 7, gpu::TagKind::gate, 0));
    }
    tags.push_back(tag(run_start, 3, gpu::TagKind::trigger, 1));  // a single one: no cycle
    tags.push_back(tag(run_start, 4, gpu::TagKind::position, 100));
    write_tags(run / "tags.plm", tags);
    REQUIRE(plotted(run).status == 0);
    auto expected = pictures_without_ledger();
    expected.insert({"phase-2", "phase-7"});
    CHECK(names_in(run / "plot") == files_of(expected));
    for (const unsigned channel : {2U, 7U}) {
        const Table table = table_of(run / "plot" / ("phase-" + std::to_string(channel) + ".csv"));
        const std::uint64_t begin = run_start + (channel == 7 ? period / 4 : 0);
        std::vector<double> prompts(32);
        std::vector<double> delayeds(32);
        for (const auto& c : records) {
            if (c.time < begin || c.time >= begin + 19 * period) continue;
            auto& counts = c.kind == gpu::Kind::prompt ? prompts : delayeds;
            ++counts[(c.time - begin) % period * 32 / period];
        }
        CHECK(table.at("prompts") == prompts);
        CHECK(table.at("delayeds") == delayeds);
        CHECK(sum(table.at("live_s")) == Approx(19 * 0.05));
    }
    const std::string html = read_file(run / "plot" / "report.html");
    check_html(html);
    CHECK(contains(html, "19 cycles of channel 7, 0.05 s each"));
    // Pictures of tags that are gone go, too.
    std::filesystem::remove(run / "tags.plm");
    REQUIRE(plotted(run, " --force").status == 0);
    CHECK(names_in(run / "plot") == files_of(pictures_without_ledger()));
}

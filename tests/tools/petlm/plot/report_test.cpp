// petlm plot: the pictures and the report of runs of all kinds.
#include "tests/tools/petlm/plot/support.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("pictures have the requested size", "[petlm][plot]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", wild_records(300));
    REQUIRE(plotted(directory / "run", " --png-width 700 -o" + quoted(directory / "pictures")).status == 0);
    CHECK(!std::filesystem::exists(directory / "run" / "plot"));
    for (const auto& name : pictures_without_ledger()) {
        CAPTURE(name);
        const Png png = png_of(directory / "pictures" / (name + ".png"));
        CHECK(png.width == 700);
        CHECK(png.height > 200);
        CHECK(png.height < 1000);
    }
    const Outcome again = plotted(directory / "run", " -o" + quoted(directory / "pictures"));
    CHECK(again.status == 64);
    CHECK_THAT(again.out, contains("--force"));
    CHECK(png_of(directory / "pictures" / "rates.png").width == 700);
    CHECK(run_petlm("plot --force" + quoted(directory / "run") + "-o" + quoted(directory / "pictures"))
              .status == 0);
    CHECK(png_of(directory / "pictures" / "rates.png").width == 1120);
    CHECK(plotted(directory / "run", " --png-width 20").status == 64);
    CHECK(plotted(directory / "run", " --depth-mm 99").status == 64);
}

TEST_CASE("runs without coincidences, without delayeds, of one pair, and of all of time are plotted",
          "[petlm][plot]") {
    const TemporaryDirectory directory;
    write_run(directory / "empty", {});
    write_run(directory / "one", wild_records(1));
    auto eternal = wild_records(3);
    eternal.back().time = UINT64_MAX - 2000;
    write_run(directory / "eternal", eternal);
    for (const char* run : {"empty", "one", "eternal"}) {
        const Outcome outcome = plotted(directory / run);
        CAPTURE(run, outcome.out);
        CHECK(outcome.status == 0);
        check_html(read_file(directory / run / "plot" / "report.html"));
        const Table rates = table_of(directory / run / "plot" / "rates.csv");
        const double expected = run == std::string("empty") ? 0 : run == std::string("one") ? 1 : 3;
        CHECK(sum(rates.at("prompts")) + sum(rates.at("delayeds")) == expected);
        CHECK(rates.at("prompts").size() <= 201);
    }
    // A run that did not search for delayeds has no number of delayeds.
    const auto none = directory / "none";
    write_run(none, of_kind(wild_records(50), gpu::Kind::prompt), export_scanner(), 1,
              {{"delay_ticks", nullptr}});
    REQUIRE(plotted(none).status == 0);
    const std::string html = read_file(none / "plot" / "report.html");
    CHECK(html.find("delayeds, as counted") == std::string::npos);
    CHECK(read_file(directory / "one" / "plot" / "report.html").find("delayeds, as counted") !=
          std::string::npos);
}

TEST_CASE("the contents of run.json are shown as text", "[petlm][plot]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", wild_records(20));
    auto run = nlohmann::json::parse(read_file(directory / "run" / "run.json"));
    run["note"] = "<script>alert(\"1\")</script> & <img src=x onerror='1'> \u0001\n";
    run["state"] = "failed";
    run["stop_reason"] = "</td></table><b>";
    run["operator"] = {
        {"nuclide", "F-18"}, {"bed_mm", -80.5}, {"subject", "a <mouse>"}, {"keys", {{"tracer", "FDG"}}}};
    run["configuration"]["listmode"]["write_singles"] = false;
    run["ledger"] = {{"closed", false},
                     {"frames",
                      {{"<i>", 3},
                       {"late", nullptr},
                       {"x", {1, 2}},
                       {"a~b", "tilde"},
                       {"a/b", "slash"},
                       {"~", nullptr},
                       {"", true},
                       {"taken_back", -44}}},
                     {"pairs", 7}};
    write_file(directory / "run" / "run.json", run.dump());
    REQUIRE(plotted(directory / "run").status == 0);
    const std::string html = read_file(directory / "run" / "plot" / "report.html");
    check_html(html);
    CHECK(html.find("&lt;script&gt;alert(&quot;1&quot;)") != std::string::npos);
    CHECK(html.find("The state of this run is failed") != std::string::npos);
    CHECK(html.find("The ledger is not closed") != std::string::npos);
    // What matters comes first.
    CHECK(html.find("\u2715 The ledger is not closed") < html.find("<main>"));
    for (const char* text : {">not written: the coincidences", ">F-18<", ">-80.5 mm<", ">a &lt;mouse&gt;<",
                             ">FDG<", "a~b", ">tilde<", "a/b", ">slash<", ">true<", ">-44<"})
        CHECK_THAT(html, contains(text));
}

TEST_CASE("the ledger of a part of a run is not called open", "[petlm][plot]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", wild_records(20));
    auto run = nlohmann::json::parse(read_file(directory / "run" / "run.json"));
    run["ledger"] = {{"pairs", {{"written", 20}}}};
    write_file(directory / "run" / "run.json", run.dump());
    REQUIRE(plotted(directory / "run").status == 0);
    const std::string html = read_file(directory / "run" / "plot" / "report.html");
    CHECK(html.find("is not closed") == std::string::npos);
    CHECK_THAT(html, contains("nobody can tell whether it closes"));
}

TEST_CASE("a report begins with whether the run can be trusted", "[petlm][plot]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", wild_records(20));
    auto run = nlohmann::json::parse(read_file(directory / "run" / "run.json"));
    run["state"] = "complete";
    run["stop_reason"] = "stopped by operator";
    run["start_utc"] = "2026-11-24T04:14:02.365Z";
    run["configuration"]["health"]["max_loss_fraction"] = 1e-3;
    const auto header = [&](std::int64_t lost, const char* output) {
        run["ledger"] = {{"closed", true}, {"datagrams", {{"received", 1'000'000}, {"lost", lost}}}};
        write_file(directory / "run" / "run.json", run.dump());
        REQUIRE(plotted(directory / "run", " -o" + quoted(directory / output)).status == 0);
        const std::string html = read_file(directory / output / "report.html");
        check_html(html);
        CHECK(html.find(">2026-11-24 04:14:02.365 UTC<") != std::string::npos);
        return html.substr(0, html.find("</header>"));
    };
    const std::string good = header(0, "good");
    for (const char* sentence :
         {"\u2713 The state of this run is complete: stopped by operator.", "\u2713 The ledger is closed",
          "\u2713 No datagram was lost; 1,000,000 were received."})
        CHECK_THAT(good, contains(sentence));
    CHECK(good.find("class=\"bad\"") == std::string::npos);
    CHECK_THAT(header(10, "few"),
               contains("\u2713 10 datagrams were lost (0.001 %); 1,000,000 were received."));
    CHECK_THAT(
        header(2'000, "many"),
        contains("<li class=\"bad\">\u2715 2,000 datagrams were lost (0.2 %); 1,000,000 were received."));
}

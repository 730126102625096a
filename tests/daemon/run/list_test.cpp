// The list of runs on disk.
#include "daemon/run/list.hpp"

#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "daemon/run/directory.hpp"
#include "daemon/system/utc.hpp"
#include "tests/daemon/listmode/support.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

json content_of(const std::string& run, const std::string& start, const std::string& state) {
    json content = {{"run_id", run}, {"start_utc", start}, {"state", state}};
    if (state == "running") return content;
    content["stop_utc"] = "2026-03-01T00:00:12.500Z";
    content["scanner"] = {{"tick_ps", 1e9}};
    content["start_ticks"] = 1000;
    content["stop_ticks"] = 13'500;
    content["stop_reason"] = "stopped by operator";
    content["ledger"] = {{"closed", state == "complete"},
                         {"pairs", {{"prompts_found", 12}, {"delayeds_found", 3}}}};
    return content;
}

/// Creates a run with `bytes` bytes next to run.json. Returns the size of run.json.
std::uint64_t make_run(const std::filesystem::path& data, const json& content, std::size_t bytes = 0) {
    const RunDirectory directory = RunDirectory::create(data, content.at("run_id").get<std::string>());
    write_json_atomically(directory.file(run_file), content);
    if (bytes > 0) std::ofstream(directory.file(coincidences_file)) << std::string(bytes, 'x');
    return std::filesystem::file_size(directory.file(run_file));
}

std::string ids(const json& page) {
    std::string text;
    for (const json& run : page.at("runs"))
        text += run.at("run").get<std::string>() + " ";
    return text;
}

std::string refusal(const auto& what) {
    try {
        what();
    } catch (const RunDirectoryError& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("the run that ended last under a daemon", "[runs]") {
    const TemporaryDirectory data;
    const auto last = [&] { return last_ended_run(data.path()); };
    int written = 0;
    const auto make = [&](json content) {
        make_run(data.path(), content);
        const auto file = data.path() / content["run_id"].get<std::string>() / run_file;
        // Whatever the clock does meanwhile.
        std::filesystem::last_write_time(file,
                                         std::filesystem::file_time_type() + std::chrono::hours(++written));
    };
    CHECK_FALSE(last());
    make(content_of("good", "2026-03-02T00:00:00.000Z", "complete"));
    REQUIRE(last());
    CHECK(last()->id == "good");
    CHECK_FALSE(last()->failed);
    CHECK(last()->reason == "stopped by operator");
    make(content_of("open", "2026-03-01T00:00:00.000Z", "bad-ledger"));
    CHECK(last()->failed);
    CHECK(last()->reason == "the ledger does not close");
    json failed = content_of("failed", "2026-03-01T00:00:00.000Z", "failed");
    failed["stop_reason"] = "No space left on device";
    make(failed);

    // Runs made by petlm or a replay, and unreadable ones, do not count as the last run.
    json made = content_of("resorted", "2026-03-03T00:00:00.000Z", "complete");
    made["resorted"] = json::object();
    make(made);
    made = content_of("replayed", "2026-03-03T00:00:00.000Z", "complete");
    made["replayed"] = json::array();
    make(made);
    make(content_of("recovered", "2026-03-03T00:00:00.000Z", "recovered"));
    make(content_of("damaged", "2026-03-03T00:00:00.000Z", "complete"));
    std::ofstream(data.path() / "damaged" / run_file) << "{";
    CHECK(last()->id == "failed");
    CHECK(last()->failed);
    CHECK(last()->reason == "No space left on device");
    CHECK(petacq::daemon::utc_text(last()->stopped.value()) == "2026-03-01T00:00:12.500Z");

    // An interrupted run is named as such.
    make(content_of("killed", "2026-03-04T00:00:00.000Z", "running"));
    CHECK_FALSE(last());
    CHECK_THAT(refusal([] { last_ended_run("/nowhere/at/all"); }),
               contains("cannot read the data directory"));
}

TEST_CASE("runs are listed by start time, with null for unknown values", "[runs]") {
    const TemporaryDirectory data;
    const auto z = make_run(data.path(), content_of("z", "2026-03-01T00:00:00.000Z", "complete"), 1000);
    make_run(data.path(), content_of("b", "2026-03-01T00:00:01.000Z", "bad-ledger"));
    make_run(data.path(), content_of("a", "2026-03-01T00:00:01.000Z", "failed"));
    const auto c = make_run(data.path(), content_of("c", "2026-03-02T00:00:00.000Z", "running"), 10);
    std::filesystem::create_directory(data.path() / "no-run");
    std::ofstream(data.path() / "file") << "x";
    RunList list(data.path());

    const json page = list.page(100, std::nullopt, "");
    CHECK(page["data_dir"] == data.path().string());
    CHECK(page["earlier"] == 0);
    CHECK(ids(page) == "z a b c ");
    CHECK(page["runs"][0] == json{{"run", "z"},
                                  {"state", "complete"},
                                  {"start_utc", "2026-03-01T00:00:00.000Z"},
                                  {"stop_utc", "2026-03-01T00:00:12.500Z"},
                                  {"seconds", 12.5},
                                  {"prompts", 12},
                                  {"delayeds", 3},
                                  {"singles", nullptr},
                                  {"triples", nullptr},
                                  {"delayed_triples", nullptr},
                                  {"reason", "stopped by operator"},
                                  {"ledger_closed", true},
                                  {"verdict", nullptr},
                                  {"bytes", 1000 + z},
                                  {"report", false}});
    CHECK(page["runs"][1]["state"] == "failed");
    CHECK(page["runs"][2]["ledger_closed"] == false);
    json unfinished = page["runs"][3];
    CHECK(unfinished == json{{"run", "c"},
                             {"state", "interrupted"},
                             {"start_utc", "2026-03-02T00:00:00.000Z"},
                             {"stop_utc", nullptr},
                             {"seconds", nullptr},
                             {"prompts", nullptr},
                             {"delayeds", nullptr},
                             {"singles", nullptr},
                             {"triples", nullptr},
                             {"delayed_triples", nullptr},
                             {"reason", nullptr},
                             {"ledger_closed", nullptr},
                             {"verdict", nullptr},
                             {"bytes", 10 + c},
                             {"report", false}});
    unfinished["state"] = "running";
    CHECK(list.page(1, std::nullopt, "c")["runs"][0] == unfinished);
}

TEST_CASE("counts of records that a run does not write are null", "[runs]") {
    const TemporaryDirectory data;
    json content = content_of("r", "2026-03-01T00:00:00.000Z", "complete");
    content["ledger"]["pairs"] = {{"prompts_found", 0}, {"delayeds_found", 0}};
    content["ledger"]["saved_singles"] = {{"found", 7}};
    const auto counts = [&](bool coincidences, bool singles) {
        content["configuration"]["listmode"] = {{"write_coincidences", coincidences},
                                                {"write_singles", singles}};
        std::filesystem::remove_all(data.path() / "r");
        make_run(data.path(), content);
        const json run = RunList(data.path()).page(1, std::nullopt, "")["runs"][0];
        return json{run["prompts"], run["delayeds"], run["singles"], run["triples"], run["delayed_triples"]};
    };
    CHECK(counts(true, false) == json{0, 0, nullptr, nullptr, nullptr});
    CHECK(counts(true, true) == json{0, 0, 7, nullptr, nullptr});
    CHECK(counts(false, true) == json{nullptr, nullptr, 7, nullptr, nullptr});
    content["configuration"]["gammas"] = {{"lower_keV", 700}};
    content["ledger"]["gammas"] = {{"triples", 5}, {"delayed", 2}};
    CHECK(counts(true, false) == json{0, 0, nullptr, 5, 2});
    CHECK(counts(false, true) == json{nullptr, nullptr, 7, nullptr, nullptr});
}

TEST_CASE("runs are listed page by page", "[runs]") {
    const TemporaryDirectory data;
    RunList list(data.path());
    CHECK(list.page(10, std::nullopt, "") ==
          json{{"data_dir", data.path().string()}, {"earlier", 0}, {"runs", json::array()}});
    for (int i = 0; i < 7; ++i) {
        make_run(data.path(), content_of("r" + std::to_string(i),
                                         "2026-03-01T00:00:0" + std::to_string(i) + ".000Z", "complete"));
    }
    json page = list.page(3, std::nullopt, "");
    CHECK(ids(page) == "r4 r5 r6 ");
    CHECK(page["earlier"] == 4);
    // A run that has started meanwhile shifts no page.
    make_run(data.path(), content_of("r7", "2026-03-01T00:00:07.000Z", "running"));
    page = list.page(3, "r4", "r7");
    CHECK(ids(page) == "r1 r2 r3 ");
    page = list.page(3, "r1", "r7");
    CHECK(ids(page) == "r0 ");
    CHECK(page["earlier"] == 0);
    CHECK(ids(list.page(3, "r0", "r7")).empty());
    CHECK(refusal([&] { list.page(3, "r9", ""); }) == "there is no run 'r9'");
}

TEST_CASE("changes on disk show in the list", "[runs]") {
    const TemporaryDirectory data;
    RunList list(data.path());
    make_run(data.path(), content_of("r", "2026-03-01T00:00:00.000Z", "running"), 5);
    CHECK(list.page(9, std::nullopt, "r")["runs"][0]["state"] == "running");
    const std::uint64_t before = list.page(9, std::nullopt, "r")["runs"][0]["bytes"];
    std::ofstream(data.path() / "r" / coincidences_file, std::ios::app) << "12345";
    CHECK(list.page(9, std::nullopt, "r")["runs"][0]["bytes"] == before + 5);
    write_json_atomically(data.path() / "r" / run_file,
                          content_of("r", "2026-03-01T00:00:00.000Z", "complete"));
    const json done = list.page(9, std::nullopt, "")["runs"][0];
    CHECK(done["state"] == "complete");
    CHECK(done["prompts"] == 12);
    std::filesystem::remove_all(data.path() / "r");
    CHECK(list.page(9, std::nullopt, "")["runs"].empty());
    std::filesystem::remove_all(data.path());
    CHECK(refusal([&] { list.page(9, std::nullopt, ""); }).starts_with("cannot read the data directory "));
    std::filesystem::create_directory(data.path());
}

TEST_CASE("a run whose description is damaged is listed as such", "[runs]") {
    const TemporaryDirectory data;
    for (const auto& [run, text] :
         {std::pair{"broken", "{"}, std::pair{"list", "[]"}, std::pair{"empty", ""}}) {
        make_run(data.path(), {{"run_id", run}});
        std::ofstream(data.path() / run / run_file) << text;
    }
    make_run(data.path(),
             {{"run_id", "odd"}, {"start_utc", 5}, {"stop_utc", "yesterday"}, {"ledger", {1, 2}}});
    RunList list(data.path());
    const json runs = list.page(9, std::nullopt, "")["runs"];
    REQUIRE(runs.size() == 4);
    for (const json& run : runs) {
        CAPTURE(run.dump());
        CHECK(run["prompts"].is_null());
        CHECK(run["seconds"].is_null());
        if (run["run"] == "odd") continue;
        CHECK(run["state"] == "unreadable");
        CHECK(run["reason"].get<std::string>().find("run.json: ") != std::string::npos);
    }
}

TEST_CASE("the ledger of a run is read, or there is a reason why not", "[runs]") {
    const TemporaryDirectory data;
    make_run(data.path(), content_of("good", "2026-03-01T00:00:00.000Z", "complete"));
    make_run(data.path(), content_of("unfinished", "2026-03-01T00:00:00.000Z", "running"));
    const RunList list(data.path());
    CHECK(list.ledger("good", "") ==
          json{{"run", "good"},
               {"state", "complete"},
               {"ledger", content_of("good", "2026-03-01T00:00:00.000Z", "complete")["ledger"]}});
    CHECK(refusal([&] { static_cast<void>(list.ledger("unfinished", "")); }) ==
          "run 'unfinished' has no ledger: it was interrupted");
    CHECK(refusal([&] { static_cast<void>(list.ledger("unfinished", "unfinished")); }) ==
          "run 'unfinished' has no ledger: it is not finished");
    CHECK(refusal([&] {
              static_cast<void>(list.ledger("none", ""));
          }).starts_with("there is no run 'none' in "));
    for (const std::string run : {"../good", "", "/etc", ".."}) {
        CAPTURE(run);
        CHECK(refusal([&] { static_cast<void>(list.ledger(run, "")); }).starts_with("run id "));
    }
}

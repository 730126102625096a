// `petctl status` on one screen: it begins with the strip, and stays within 25 lines of 80 columns.
#include "tools/petctl/text/status_summary.hpp"

#include <algorithm>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/tools/petctl/petctl_process.hpp"

using namespace petacq::petctl;
using namespace petacq::test;
using nlohmann::json;

namespace {

json strip(const std::string& state, const std::string& word, const std::string& text) {
    return {{"state", state},          {"word", word}, {"text", text},
            {"run_id", "night-3"},     {"note", ""},   {"since_utc", ""},
            {"command", json(nullptr)}};
}

/// 76 modules and sources; `problems` reasons for trouble.
json large_scanner(int problems) {
    json status = full_status();
    status["sources"] = status["modules"] = json::array();
    for (int i = 0; i < 76; ++i) {
        status["sources"].push_back({{"id", i}, {"state", i < 74 ? "active" : "silent"}, {"health", "ok"}});
        status["modules"].push_back({{"bdm", i}, {"health", i % 3 == 0 ? "degraded" : "ok"}});
    }
    status["sources"][75]["health"] = "degraded";
    status["health"]["reasons"] = json::array();
    for (int i = 0; i < problems; ++i) {
        status["health"]["reasons"].push_back(
            {{"code", "reason_" + std::to_string(i)},
             {"message", std::string(i % 2 == 0 ? "23 BDMs are above 50 C: 0, 2, 6, 9, 11, 13, 17, 20, 22, "
                                                  "25, ...: check their cooling"
                                                : "source 75 has been silent for 12.5 s: check its power")},
             {"severity", "degraded"},
             {"since_s", 75.0}});
    }
    return status;
}

std::string shown(const json& status, bool unicode = false) {
    return joined(status_summary(status, {80, unicode}), false);
}

std::size_t lines_of(const std::string& text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

std::size_t widest(const std::string& text) {
    std::size_t most = 0;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin);
        most = std::max(most, width_of(text.substr(begin, end - begin)));
        begin = end + 1;
    }
    return most;
}

}  // namespace

TEST_CASE("summary: one screen, however much is wrong", "[control]") {
    for (const int problems : {0, 1, 3, 5, 8, 9, 30, 500}) {
        CAPTURE(problems);
        const std::string text = shown(large_scanner(problems));
        INFO(text);
        CHECK(text.starts_with("* RECORDING  run mouse-7: 1 h 02 min of 2 h 00 min"));
        CHECK(contains(text, "\n             note: evil \\u001b[31m\n"));
        CHECK(lines_of(text) <= 25);
        CHECK(widest(text) <= 80);
        CHECK(contains(text, "  sources           76: 74 active, 2 silent\n"));
        CHECK(contains(text, "  BDMs              76: 50 ok, 26 degraded\n"));
        CHECK(contains(text, "  ledger            closed, 12 datagrams lost, 3 frames late\n"));
        CHECK(contains(text, "  prompts               312 k/s        -\n"));
        CHECK(contains(text, "--full"));
        CHECK_FALSE(contains(text, "triples"));
        if (problems > 0) CHECK(contains(text, "    reason_0: 23 BDMs are above 50 C: 0, 2, 6,"));
        CHECK(contains(text, "more\n") == (problems > 3));
    }
    UNSCOPED_INFO(shown(large_scanner(3)));
    json lossy = large_scanner(0);
    lossy["ledger"]["frames"] = {{"late", 1}, {"time_jump", 1}, {"bad_marker", 2}, {"bad_time", 3}};
    lossy["ledger"]["tags"] = {{"write_failed", 4}};
    CHECK(contains(joined(status_summary(lossy, {160, false}), false),
                   "closed, 12 datagrams lost, 4 records not written, 1 frame late, 1 time jump rejected, "
                   "5 frames invalid\n"));
    // With room, a reason is shown to its end.
    CHECK(contains(shown(large_scanner(3)), "check their cooling (for 1 min 15 s)\n"));
}

TEST_CASE("summary: a daemon that records triples shows their rate", "[control]") {
    json status = large_scanner(9);
    status["rates"]["triples_per_s"] = 4321;
    const std::string text = shown(status);
    INFO(text);
    CHECK(contains(text, "  triples             4.321 k/s        -\n"));
    CHECK(lines_of(text) <= 25);
    CHECK(widest(text) <= 80);
}

TEST_CASE("summary: the four words, each with a symbol", "[control]") {
    json status = large_scanner(2);
    status["recording"] = strip("not_recording", "NOT RECORDING", "frames arrive, no run is in progress");
    CHECK(shown(status).starts_with("o NOT RECORDING  frames arrive, no run is in progress\n"));
    CHECK(shown(status, true).starts_with("\u25A0 NOT RECORDING  "));
    status["recording"] = strip("no_data", "NO DATA", "no frames have arrived for 3 h 12 min");
    CHECK(shown(status).starts_with("x NO DATA  no frames have arrived for 3 h 12 min\n"));
    CHECK(shown(status, true).starts_with("\u2715 NO DATA  "));
    status["recording"] = strip("interrupted", "INTERRUPTED", "");
    const std::string command =
        "petlm recover /var/lib/petacqd/a-run-with-a-long-name-2026-11-24T02-14-07Z -o night-3.recovered";
    status["recording"]["command"] = command;
    const std::string text = shown(status);
    INFO(text);
    CHECK(text.starts_with("! INTERRUPTED  run night-3 ended without being stopped"));
    // To be copied: not divided.
    CHECK(
        contains(text, "\n                 " + command + "\n                 petctl acknowledge night-3\n"));
    CHECK(lines_of(text) <= 25);
    CHECK(shown(status, true).starts_with("\u25B2 INTERRUPTED  "));
    CHECK(strip_title(status) == "INTERRUPTED night-3 - petacqd small");
    CHECK(strip_word(status).style == Style::warning);  // orange, as on the page
    status["interrupted"]["count"] = 3;
    CHECK(shown(status).starts_with(
        "! INTERRUPTED  run night-3 (and 2 before it) ended without being stopped"));
}

TEST_CASE("summary: of documents with little in them, or of other versions", "[control]") {
    for (const json& odd : {json(), json::array(), json{{"recording", 5}},
                            json{{"recording", json::object()}, {"sources", {1, nullptr}}},
                            json{{"recording", {{"state", "later"}, {"word", "\x1b[31mLATER"}}}}}) {
        const std::string text = shown(odd);
        INFO(text);
        CHECK(contains(text, "  health            -\n"));
        CHECK_FALSE(contains(text, "\x1b"));
        CHECK(lines_of(text) <= 25);
    }
    CHECK(strip_title(json()) == "- - petacqd -");
}

TEST_CASE("summary: the full status has what it leaves out", "[control]") {
    TestServer server;
    server.handler.set_status(full_status());
    const std::string socket = server.socket().string();
    Petctl brief({"--socket", socket, "status"});
    CHECK(brief.wait() == 0);
    CHECK(lines_of(brief.output()) <= 25);
    CHECK_FALSE(contains(brief.output(), "mean keV"));
    Petctl both({"--socket", socket, "status", "--full", "--json"});
    CHECK(both.wait() == 64);
    Petctl full({"--socket", socket, "status", "--full"});
    CHECK(full.wait() == 0);
    CHECK(contains(full.output(), "mean keV"));
}

TEST_CASE("text is divided at blanks, and clipped", "[control]") {
    const Line line{{"    "}, {"code", Style::bad}, {": one two three"}};
    CHECK(joined(wrapped(line, 14, 6), false) == "    code: one\n      two\n      three\n");
    CHECK(joined(wrapped(line, 80, 6), false) == "    code: one two three\n");
    CHECK(wrapped("averyveryverylongword and", 10) ==
          std::vector<std::string>{"averyveryverylongword", "and"});
    CHECK(joined({clipped(line, 12)}, false) == "    code:...\n");
    CHECK(joined({clipped(line, 23)}, false) == "    code: one two three\n");
    CHECK(joined({clipped({{"\u25CF\u25CF\u25CF\u25CF\u25CF"}}, 4)}, false) == "\u25CF...\n");
}

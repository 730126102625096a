// What the daemon keeps of the past: seconds, half minutes, and events, also after a restart.
#include <chrono>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "daemon/http/history.hpp"
#include "tests/daemon/http/site.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq::test;
using namespace petacq::daemon;
using nlohmann::json;

namespace {

constexpr std::int64_t noon = 1'700'049'600;  // 2023-11-15

History::Time moment(std::int64_t seconds) {
    return History::Time(std::chrono::seconds(seconds));
}

json seen(const char* run = nullptr, const char* state = "not_recording", const char* reason = nullptr) {
    json status = {{"version", "1.2"},
                   {"rates", {{"prompts_per_s", 1234.5678}, {"lost_fraction", nullptr}}},
                   {"run", nullptr},
                   {"recording", {{"state", state}, {"word", "A WORD"}, {"text", "a text"}}},
                   {"health", {{"state", "ok"}, {"reasons", json::array()}}}};
    if (run != nullptr)
        status["run"] = {{"id", run},
                         {"start_utc", nullptr},
                         {"note", "two rods"},
                         {"marks", {{"count", 0}, {"latest", json::array()}}}};
    if (reason != nullptr)
        status["health"]["reasons"].push_back(
            {{"code", reason}, {"message", "source 3 is silent"}, {"severity", "degraded"}});
    return status;
}

/// Kind, code and text of each event, one line each.
std::string events_of(const History& history) {
    std::string lines;
    const json answer = history.between(moment(0), moment(2 * noon));
    for (const json& event : answer["events"])
        lines += event["utc"].get<std::string>().substr(11, 8) + ' ' + event["kind"].get<std::string>() +
                 ' ' + event["text"].get<std::string>() + '\n';
    return lines;
}

History night() {
    History history;
    history.add(seen(), moment(noon));
    json run = seen("night", "recording");
    history.add(run, moment(noon + 1));
    run["run"]["marks"]["latest"].push_back(
        {{"utc", "2023-11-15T12:00:01.500Z"}, {"ticks", 77U}, {"text", "FDG injected"}});
    history.add(run, moment(noon + 2));
    history.add(run, moment(noon + 3));
    return history;
}

}  // namespace

TEST_CASE("history: what changes from one status to the next is an event", "[http][history]") {
    History history = night();
    history.add(seen("night", "recording", "source_silent"), moment(noon + 10));
    history.add(seen("night", "recording"), moment(noon + 20));
    json after = seen();
    after["last_run"] = {
        {"id", "night"}, {"verdict", "bad"}, {"failed", false}, {"reason", "duration reached"}};
    history.add(after, moment(noon + 30));
    history.stop(moment(noon + 40));
    history.stop(moment(noon + 41));
    CHECK(events_of(history) ==
          "12:00:00 daemon_started petacqd 1.2 started\n"
          "12:00:00 recording A WORD: a text\n"
          "12:00:01 run_started run night started: two rods\n"
          "12:00:01 recording A WORD: a text\n"
          "12:00:01 mark FDG injected\n"
          "12:00:10 raised source 3 is silent\n"
          "12:00:20 cleared source 3 is silent\n"
          "12:00:30 run_ended run night ended: duration reached; its data are bad\n"
          "12:00:30 recording A WORD: a text\n"
          "12:00:40 daemon_stopped petacqd stopped\n");
    const json answer = history.between(moment(noon + 1), moment(noon + 2));
    CHECK(answer["events"].size() == 3);
    CHECK(answer["events"][2] == json{{"utc", "2023-11-15T12:00:01.500Z"},
                                      {"kind", "mark"},
                                      {"code", nullptr},
                                      {"run", "night"},
                                      {"text", "FDG injected"},
                                      {"ticks", 77U}});
    CHECK(json::parse(history.day_text(moment(noon + 50)))["marks"] ==
          json::array({{{"time", noon + 1.5}, {"run", "night"}, {"text", "FDG injected"}}}));
}

TEST_CASE("history: a run of the first second began after the daemon", "[http][history]") {
    History history;
    json first = seen("night", "recording");
    first["uptime_s"] = 0.75;
    first["run"]["start_utc"] = "2023-11-15T11:59:59.500Z";
    history.add(first, moment(noon));
    CHECK(
        events_of(history).starts_with("11:59:59 daemon_started petacqd 1.2 started\n"
                                       "11:59:59 run_started run night started"));
    const json answer = history.between(moment(0), moment(2 * noon));
    CHECK(answer["events"][0]["utc"] == "2023-11-15T11:59:59.250Z");
}

TEST_CASE("history: a reason that is back within a minute has not been away", "[http][history]") {
    History history;
    for (std::int64_t s = 0; s < 100; ++s)
        history.add(seen(nullptr, "no_data", s % 2 == 0 ? "source_silent" : nullptr), moment(noon + s));
    CHECK(events_of(history) ==
          "12:00:00 daemon_started petacqd 1.2 started\n12:00:00 raised source 3 is silent\n"
          "12:00:00 recording A WORD: a text\n12:01:39 cleared source 3 is silent\n");
    history.add(seen(nullptr, "no_data", "source_silent"), moment(noon + 200));
    CHECK(events_of(history).ends_with(
        "12:01:39 cleared source 3 is silent\n12:03:20 raised source 3 is silent\n"));
}

TEST_CASE("history: events are bounded in number, size and age", "[http][history]") {
    History history;
    json status = seen();
    for (std::int64_t i = 0; i < 3000; ++i) {
        status["recording"]["state"] = i % 2 == 0 ? "recording" : "no_data";
        status["recording"]["text"] = std::string(5000, '"');
        history.add(status, moment(noon + i));
    }
    CHECK(history.between(moment(0), moment(2 * noon))["events"].size() == EventHistory::max_events);
    CHECK(history.file_text().size() < History::max_file_bytes / 2);
    history.add(seen(), moment(noon + 9 * 86'400));
    CHECK(history.between(moment(0), moment(2 * noon))["events"].size() == 1);
    // A clock that was set back.
    history.add(seen(), moment(noon));
    CHECK(history.between(moment(noon + 1), moment(2 * noon))["events"].empty());
    // Half a character is none.
    status["recording"] = {{"state", "x"}, {"word", ""}, {"text", std::string(253, 'x') + "\u00B5\u00B5"}};
    history.add(status, moment(noon + 1));
    CHECK(events_of(history).ends_with(std::string(253, 'x') + "\n"));
}

TEST_CASE("history: seconds and events survive a restart, and a crash is an event", "[http][history]") {
    History before = night();
    const bool in_order = GENERATE(true, false);
    if (in_order) before.stop(moment(noon + 4));
    History after;
    after.read(before.file_text(), moment(noon + 60));
    json recent = json::parse(after.recent_text());
    CHECK(recent["time"] == json::array({noon, noon + 1, noon + 2, noon + 3}));
    CHECK(recent["prompts_per_s"] == json::array({1234.57, 1234.57, 1234.57, 1234.57}));
    CHECK(recent["uptime_s"] == json::array({nullptr, nullptr, nullptr, nullptr}));
    after.add(seen(), moment(noon + 61));
    CHECK(json::parse(after.recent_text())["time"].size() == 5);
    CHECK(events_of(after).starts_with(events_of(before)));
    CHECK(events_of(after).substr(events_of(before).size()) ==
          std::string(in_order ? ""
                               : "12:00:03 daemon_gone nothing more is known: petacqd was killed, or the "
                                 "host lost power\n") +
              "12:01:01 daemon_started petacqd 1.2 started\n12:01:01 recording A WORD: a text\n");
    // What is too old for the seconds.
    after.read(before.file_text(), moment(noon + 602));
    CHECK(json::parse(after.recent_text())["time"] == json::array({noon + 2, noon + 3}));
    after.read(before.file_text(), moment(noon - 10));
    CHECK(json::parse(after.recent_text())["time"].empty());
}

TEST_CASE("history: a damaged file leaves nothing behind", "[http][history]") {
    const std::string text = night().file_text();
    std::vector<std::string> damaged;
    for (std::size_t n = 1; n + 1 < text.size(); n += 17)
        damaged.push_back(text.substr(0, n));
    const auto change = [&](auto edit) {
        json document = json::parse(text);
        edit(document);
        damaged.push_back(document.dump());
    };
    change([](json& d) { d["events"][0] = "x"; });
    change([](json& d) { d["events"][0][1] = 7; });
    change([](json& d) { d["events"][2].erase(4); });
    change([](json& d) { d["seconds"] = json::array(); });
    change([](json& d) { d["seconds"]["rows"][0] = json::array(); });
    change([](json& d) { d["seconds"]["rows"][0][1] = "x"; });
    for (const std::string& bad : damaged) {
        History history;
        CHECK_THROWS_AS(history.read(bad, moment(noon + 60)), std::runtime_error);
        CHECK(json::parse(history.recent_text())["time"].empty());
        CHECK(events_of(history).empty());
    }
    // An earlier version kept neither.
    json earlier = json::parse(text);
    earlier.erase("seconds");
    earlier.erase("events");
    History history;
    CHECK_NOTHROW(history.read(earlier.dump(), moment(noon + 60)));
}

TEST_CASE("history: the server writes it when it stops, and reads it again", "[http][history]") {
    const TemporaryDirectory data;
    HttpOptions options;
    options.history_file = data / "history.json";
    { const Site site(options); }
    const Site site(options);
    const json recent = json::parse(http_get(site.port, "/history").body);
    REQUIRE(recent["time"].size() == 2);
    CHECK(recent["uptime_s"] == json::array({nullptr, 101.0}));
    std::promise<Answer> promise;
    HttpServer& server = const_cast<HttpServer&>(site.server);
    server.history({}, Reply([&](const Answer& answer) { promise.set_value(answer); }));
    const json answer = json::parse(promise.get_future().get().result);
    std::vector<std::string> kinds;
    for (const json& event : answer["events"])
        kinds.push_back(event["kind"]);
    CHECK(kinds == std::vector<std::string>{"daemon_started", "run_started", "raised", "recording",
                                            "daemon_stopped", "daemon_started", "run_started", "raised",
                                            "recording"});
}

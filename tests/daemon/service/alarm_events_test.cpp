#include "daemon/service/alarm_events.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace petacq::daemon {
namespace {

using nlohmann::json;
using std::chrono::seconds;

json status(const std::vector<std::string>& codes, const std::string& recording = "recording") {
    json reasons = json::array();
    for (const std::string& code : codes)
        reasons.push_back({{"code", code}, {"message", code + " is wrong"}, {"severity", "degraded"}});
    return {{"health", {{"state", codes.empty() ? "ok" : "degraded"}, {"reasons", reasons}}},
            {"recording", {{"state", recording}, {"word", "WORD"}, {"text", "text"}}}};
}

/// "raised disk_slow"
std::vector<std::string> names(const std::vector<AlarmFacts>& events) {
    std::vector<std::string> all;
    for (const AlarmFacts& event : events)
        all.push_back(event.at("event") + " " + event.at("code"));
    return all;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("alarm events: a reason is an event when it appears and when it is gone", "[alarm]") {
    AlarmEvents events(seconds(60));
    const auto start = AlarmEvents::Clock::now();
    CHECK(names(events.of(status({"disk_slow"}), start)) == Names{"raised disk_slow"});
    CHECK(events.of(status({"disk_slow"}), start + seconds(1)).empty());
    CHECK(names(events.of(status({"disk_slow", "late_frames"}), start + seconds(2))) ==
          Names{"raised late_frames"});
    CHECK(names(events.of(status({"late_frames"}), start + seconds(3))) == Names{"cleared disk_slow"});
}

TEST_CASE("alarm events: the recording state is an event when it changes, not at first", "[alarm]") {
    AlarmEvents events(seconds(60));
    const auto start = AlarmEvents::Clock::now();
    CHECK(events.of(status({}, "recording"), start).empty());
    const auto changed = events.of(status({}, "no_data"), start + seconds(1));
    REQUIRE(names(changed) == Names{"recording no_data"});
    CHECK(changed[0].at("message") == "WORD: text");
    CHECK(events.of(status({}, "no_data"), start + seconds(2)).empty());
}

TEST_CASE("alarm events: the same event comes once per interval, and after it if it still holds", "[alarm]") {
    AlarmEvents events(seconds(60));
    const auto start = AlarmEvents::Clock::now();
    std::size_t raised = 0;
    std::size_t cleared = 0;
    for (int second = 0; second < 59; ++second) {  // a reason that comes and goes
        for (const AlarmFacts& event :
             events.of(status(second % 2 == 0 ? Names{"disk_slow"} : Names{}), start + seconds(second)))
            ++(event.at("event") == "raised" ? raised : cleared);
    }
    CHECK(raised == 1);
    CHECK(cleared == 1);
    CHECK(names(events.of(status({"disk_slow"}), start + seconds(61))) == Names{"raised disk_slow"});
}

TEST_CASE("alarm events: text from outside is made harmless", "[alarm]") {
    AlarmEvents events(seconds(60));
    json document = status({"disk_slow"});
    document["health"]["reasons"][0]["message"] = "a\x1B[2J";
    const auto found = events.of(document, AlarmEvents::Clock::now());
    REQUIRE(found.size() == 1);
    CHECK(found[0].at("message").find('\x1B') == std::string::npos);
}

}  // namespace petacq::daemon

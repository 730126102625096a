// petctl history: what happened, in the order of time.
#include <cstdlib>
#include <string>
#include <vector>

#include "daemon/system/utc.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petctl/petctl_process.hpp"

using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

json event(const std::string& utc, const std::string& kind, const std::string& text) {
    return {{"utc", utc},     {"kind", kind}, {"code", nullptr},
            {"run", "night"}, {"text", text}, {"ticks", nullptr}};
}

json answer() {
    json found = {{"since", "2026-11-20T22:00:00.000Z"},
                  {"until", "2026-11-21T01:00:00.000Z"},
                  {"step_s", 30},
                  {"runs", json::array()}};
    // Two half minutes in one part of ten minutes, one in another.
    found["rates"] = {{"time", {1'795'212'000, 1'795'212'030, 1'795'219'200}},
                      {"prompts_per_s", {1000.0, 3000.0, nullptr}},
                      {"net_trues_per_s", {900.0, 2900.0, nullptr}},
                      {"singles_per_s", {1e6, 1.5e6, 2e6}},
                      {"lost_fraction", {0.0, 0.0125, 0.0}}};
    found["events"] = {event("2026-11-20T22:00:05.250Z", "run_started", "run night started"),
                       event("2026-11-20T23:59:59.000Z", "raised", "source 3 is silent\x1b[31m"),
                       event("2026-11-21T00:10:00.000Z", "mark", "FDG injected")};
    found["events"][2]["ticks"] = 12'345;
    return found;
}

}  // namespace

TEST_CASE("petctl: history shows events and rates in the order of time", "[control]") {
    TestServer server;
    server.handler.set_history(answer());
    const std::string socket = server.socket().string();
    Petctl utc({"--socket", socket, "history", "--since", "2026-11-20T22:00:00Z", "--until",
                "2026-11-21T02:00:00+01:00"},
               {"TZ=UTC"});
    CHECK(utc.wait() == 0);
    CHECK(utc.output() ==
          "  2026-11-20\n"
          "  22:00:05 UTC  run     run night started\n"
          "  22:10:00 UTC  rates   2 k/s prompts, 1.9 k/s net trues, 1.25 M/s singles, at most 1.25 % lost, "
          "over "
          "1 min\n"
          "  23:59:59 UTC  raised  source 3 is silent\\u001b[31m\n"
          "  2026-11-21\n"
          "  00:10:00 UTC  rates   2 M/s singles, at most 0 % lost, over 0.5 min\n"
          "  00:10:00 UTC  mark    FDG injected (12,345 ticks)\n");
    CHECK(server.handler.last_history().since == utc_time("2026-11-20T22:00:00Z"));
    CHECK(server.handler.last_history().until == utc_time("2026-11-21T01:00:00Z"));
    Petctl local({"--socket", socket, "history"}, {"TZ=XYZ-2"});
    CHECK(local.wait() == 0);
    CHECK_THAT(local.output(), contains("\n  22:00:05 UTC  00:00:05 XYZ  run     run night started\n"));
    // Where the day of the operator changes at another time than that of UTC.
    Petctl west({"--socket", socket, "history"}, {"TZ=XYZ0:05"});
    CHECK(west.wait() == 0);
    CHECK_THAT(west.output(), contains("  2026-11-21    2026-11-21\n"));
    CHECK_FALSE(server.handler.last_history().until);
    const auto ago = std::chrono::system_clock::now() - server.handler.last_history().since.value();
    CHECK(ago >= std::chrono::hours(24));
    CHECK(ago < std::chrono::hours(25));
    Petctl document({"--socket", socket, "history", "--json", "--since", "90min"});
    CHECK(document.wait() == 0);
    CHECK(json::parse(document.output())["rates"] == answer()["rates"]);

    server.handler.set_history({{"events", json::array()}});
    Petctl nothing({"--socket", socket, "history"});
    CHECK(nothing.wait() == 0);
    CHECK(nothing.output() == "nothing is known of that time\n");
}

TEST_CASE("petctl: history names a time that is none", "[control]") {
    TestServer server;
    for (const char* time : {"yesterday", "12", "12x", "-3h", "0d", "nan h", "1e9d", "2026-11-20", "h"}) {
        INFO(time);
        Petctl petctl({"--socket", server.socket().string(), "history", std::string("--since=") + time});
        CHECK(petctl.wait() == 64);
        CHECK_THAT(petctl.errors(),
                   contains("--since: expected a time such as 2026-11-20T18:45:00Z, or how long "
                            "ago, such as 90min, 12h or 2d; found "));
    }
    Petctl turned({"--socket", server.socket().string(), "history", "--since", "2026-11-20T18:45:00Z",
                   "--until", "2026-11-20T18:45:00Z"});
    CHECK(turned.wait() == 1);
    CHECK(turned.errors() == "petctl: since: expected a time before 2026-11-20T18:45:00.000Z\n");
}

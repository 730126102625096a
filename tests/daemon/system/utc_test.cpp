#include "daemon/system/utc.hpp"

#include "tests/support/catch.hpp"

using petacq::daemon::utc_text;
using petacq::daemon::utc_time;

TEST_CASE("UTC times as text", "[utc]") {
    const std::chrono::system_clock::time_point time(std::chrono::milliseconds(1'795'200'300'007));
    CHECK(utc_text(time) == "2026-11-20T18:45:00.007Z");
    CHECK(utc_text(time, "%a, %d %b %Y %H:%M:%S GMT") == "Fri, 20 Nov 2026 18:45:00 GMT");
    CHECK(utc_text({}) == "1970-01-01T00:00:00.000Z");
    CHECK(utc_time(utc_text(time)) == time);
}

TEST_CASE("the time of a text", "[utc]") {
    const auto text = [](std::string_view from) {
        const auto time = utc_time(from);
        return time ? utc_text(*time) : "none";
    };
    CHECK(text("2026-11-20T18:45:00Z") == "2026-11-20T18:45:00.000Z");
    CHECK(text("2026-11-20T18:45Z") == "2026-11-20T18:45:00.000Z");
    CHECK(text("2026-11-20T18:45:00.5Z") == "2026-11-20T18:45:00.500Z");
    CHECK(text("2026-11-20T18:45:00,25Z") == "2026-11-20T18:45:00.250Z");
    CHECK(text("2026-11-20T18:45:00.12399999999999Z") == "2026-11-20T18:45:00.123Z");
    CHECK(text("2026-11-20T19:45:00+01:00") == "2026-11-20T18:45:00.000Z");
    CHECK(text("2026-11-20T13:15:00.1-0530") == "2026-11-20T18:45:00.100Z");
    CHECK(text("2026-11-20T00:15:00+01") == "2026-11-19T23:15:00.000Z");
    CHECK(text("2028-02-29T23:59:59Z") == "2028-02-29T23:59:59.000Z");
    for (const char* wrong : {"",
                              "now",
                              "2026-11-20",
                              "2026-11-20T18:45:00",
                              "2026-11-20 18:45:00Z",
                              "20261120T184500Z",
                              "2026-02-29T00:00:00Z",
                              "2026-13-01T00:00:00Z",
                              "2026-00-01T00:00:00Z",
                              "2026-01-00T00:00:00Z",
                              "2026-11-20T24:00:00Z",
                              "2026-11-20T18:60:00Z",
                              "2026-11-20T18:45:60Z",
                              "2026-11-20T18:45:00.Z",
                              "2026-11-20T18:45:00Zulu",
                              "2026-11-20T18:45:00+",
                              "2026-11-20T18:45:00+1:00",
                              "2026-11-20T18:45:00+24:00",
                              "2026-11-20T18:45:00+01:",
                              "2026-11-20T18:45:00+01:00x",
                              "1969-12-31T23:59:59Z",
                              "2200-01-01T00:00:00Z",
                              "-026-11-20T18:45:00Z",
                              "2026-11-20T18:45: 1Z"}) {
        INFO(wrong);
        CHECK(text(wrong) == "none");
    }
}

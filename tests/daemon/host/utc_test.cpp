#include "daemon/host/utc.hpp"

#include "tests/support/catch.hpp"

using petacq::daemon::utc_text;

TEST_CASE("UTC times as text", "[utc]") {
    const std::chrono::system_clock::time_point time(std::chrono::milliseconds(1'795'200'300'007));
    CHECK(utc_text(time) == "2026-11-20T18:45:00.007Z");
    CHECK(utc_text(time, "%a, %d %b %Y %H:%M:%S GMT") == "Fri, 20 Nov 2026 18:45:00 GMT");
    CHECK(utc_text({}) == "1970-01-01T00:00:00.000Z");
}

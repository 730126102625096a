// The text of the progress line.
#include "daemon/system/progress_line.hpp"
#include "tests/support/catch.hpp"

using petacq::daemon::progress_text;

TEST_CASE("progress: how far, how fast, and how much time is left", "[progress]") {
    constexpr std::uint64_t giga = 1'000'000'000;
    CHECK(progress_text("verifying a.plm", 2 * giga, 0, 8 * giga, 4) ==
          "verifying a.plm: 25 % of 8.0 GB, 500 MB/s, 12 s left");
    CHECK(progress_text("exporting r", 10 * giga, 0, 1000 * giga, 10) ==
          "exporting r: 1 % of 1000.0 GB, 1000 MB/s, 17 min left");
    CHECK(progress_text("exporting r", giga, 0, 1000 * giga, 10) ==
          "exporting r: 0 % of 1000.0 GB, 100 MB/s, 2 h 47 min left");
    // Work done before the start does not count towards the rate.
    CHECK(progress_text("cutting", 6 * giga, 5 * giga, 8 * giga, 2) ==
          "cutting: 75 % of 8.0 GB, 500 MB/s, 4 s left");
    CHECK(progress_text("cutting", 5 * giga, 5 * giga, 8 * giga, 0) == "cutting: 62 % of 8.0 GB");
    CHECK(progress_text("cutting", 8 * giga, 0, 8 * giga, 2) == "cutting: 100 % of 8.0 GB, 4000 MB/s");
}

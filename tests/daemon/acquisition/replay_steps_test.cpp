// A replay is cut at steps of detector time.
#include "daemon/acquisition/replay_steps.hpp"

#include "tests/support/catch.hpp"

using namespace petacq::daemon;

TEST_CASE("a replay is cut four times per second of detector time") {
    ReplaySteps steps(100);
    CHECK(steps.ends_step(1000));
    CHECK_FALSE(steps.ends_step(1000));
    CHECK_FALSE(steps.ends_step(1024));
    CHECK(steps.ends_step(1025));
    CHECK_FALSE(steps.ends_step(1049));
    CHECK(steps.ends_step(1050));
    // Disorder does not cut a slice; a wild time ahead does not end the cutting.
    CHECK_FALSE(steps.ends_step(900));
    CHECK(steps.ends_step(1'000'000));
    CHECK(steps.ends_step(1060));
    CHECK(steps.ends_step(1085));
    CHECK(steps.ends_step(UINT64_MAX));
    CHECK(steps.ends_step(1110));
}

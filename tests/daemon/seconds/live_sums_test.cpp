// For which share of a run the data of the boards arrived, from its seconds.
#include "daemon/seconds/live_sums.hpp"

#include <array>
#include <limits>

#include "tests/support/catch.hpp"

using namespace petacq;
using daemon::LiveSums;

namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

bool no_singles(std::size_t /*module*/) {
    return false;
}

}  // namespace

TEST_CASE("live sums: a module that is heard later had delivered nothing before") {
    LiveSums live;
    live.add(3, std::array{1.0, unknown}, no_singles);
    CHECK_FALSE(live.mean());  // nobody has heard of it
    CHECK(live.of(0) == 1);
    live.add(1, std::array{1.0, 0.8}, no_singles);
    CHECK(*live.of(1) == Approx(0.2));
    CHECK(*live.mean() == Approx(0.6));
}

TEST_CASE("live sums: what is not known of a module that has singles is not said") {
    LiveSums live;
    live.add(1, std::array{1.0, unknown}, [](std::size_t module) { return module == 1; });
    live.add(1, std::array{1.0, 1.0}, no_singles);
    CHECK(live.of(0) == 1);
    CHECK_FALSE(live.of(1));
    CHECK_FALSE(live.mean());
    CHECK_FALSE(LiveSums().mean());
}

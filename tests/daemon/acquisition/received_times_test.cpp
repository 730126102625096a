// The times that count as received.
#include "daemon/acquisition/received_times.hpp"

#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;

namespace {

net::Datagram datagram(std::uint64_t first, std::uint64_t last) {
    net::Datagram d;
    d.first_time = first;
    d.last_time = last;
    d.frames = 2;
    return d;
}

}  // namespace

TEST_CASE("the earliest and the newest time are of believed frames") {
    ReceivedTimes times;
    CHECK(times.earliest() == UINT64_MAX);
    CHECK(times.newest() == 0);
    const Verdict believe{true, 100, 1000};
    CHECK(times.add(datagram(500, 600), believe) == 600);
    CHECK(times.add(datagram(300, 400), believe) == 400);
    CHECK(times.earliest() == 300);
    CHECK(times.newest() == 600);
    CHECK_FALSE(times.add(datagram(50, 2000), believe));
    CHECK_FALSE(times.add(datagram(200, 2000), believe));  // the first of them counts
    CHECK(times.earliest() == 200);
    CHECK(times.newest() == 600);
    CHECK_FALSE(times.add(datagram(10, 5000), {true, 1, 0}));
    CHECK(times.earliest() == 200);
    times.clear();
    CHECK(times.earliest() == UINT64_MAX);
    CHECK(times.newest() == 0);
}

// Host time, live and in a replay, and the steps of a replay.
#include "daemon/acquisition/host_clock.hpp"

#include "tests/support/catch.hpp"

using namespace petacq::daemon;

namespace {

std::int64_t steady_ns() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

TEST_CASE("live host time follows the arrivals, and the clock while the queue is empty") {
    HostClock clock(std::chrono::milliseconds(20));
    CHECK(clock.live());
    CHECK(clock.now_ns() == 0);
    clock.batch_arrived(500);
    CHECK(clock.now_ns() == 500);
    clock.batch_arrived(400);
    CHECK(clock.now_ns() == 500);
    const std::int64_t before = steady_ns();
    clock.queue_is_empty();
    CHECK(clock.now_ns() >= before);
    CHECK(clock.now_ns() <= steady_ns());
    const std::int64_t read = clock.received_so_far_is_read_ns();
    CHECK(read >= before + 20'000'000);
    CHECK(read <= steady_ns() + 20'000'000);
    CHECK_FALSE(clock.ends_step(0));
}

TEST_CASE("host time of a replay is what the replayer says, and never goes back") {
    std::atomic<std::int64_t> replayed{1000};
    HostClock clock(replayed, 100);
    CHECK_FALSE(clock.live());
    clock.queue_is_empty();
    CHECK(clock.now_ns() == 1000);
    clock.batch_arrived(3000);
    clock.queue_is_empty();
    CHECK(clock.now_ns() == 3000);
    replayed = INT64_MAX / 2;
    clock.queue_is_empty();
    CHECK(clock.now_ns() == INT64_MAX / 2);
    // A replay is completely read when it is asked to stop, whatever its clock.
    CHECK(clock.received_so_far_is_read_ns() < 0);
}

TEST_CASE("a replay is cut four times per second of detector time") {
    const std::atomic<std::int64_t> replayed{0};
    HostClock clock(replayed, 100);
    CHECK(clock.ends_step(1000));
    CHECK_FALSE(clock.ends_step(1000));
    CHECK_FALSE(clock.ends_step(1024));
    CHECK(clock.ends_step(1025));
    CHECK_FALSE(clock.ends_step(1049));
    CHECK(clock.ends_step(1050));
    // Disorder does not cut a slice; a wild time ahead does not end the cutting.
    CHECK_FALSE(clock.ends_step(900));
    CHECK(clock.ends_step(1'000'000));
    CHECK(clock.ends_step(1060));
    CHECK(clock.ends_step(1085));
    CHECK(clock.ends_step(UINT64_MAX));
    CHECK(clock.ends_step(1110));
}

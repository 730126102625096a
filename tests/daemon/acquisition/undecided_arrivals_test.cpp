// The arrivals from which the latency is measured.
#include "daemon/acquisition/undecided_arrivals.hpp"

#include <cstdint>
#include <vector>

#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;

namespace {

constexpr std::int64_t host_ms = 1'000'000;
constexpr std::int64_t host_s = 1'000'000'000;

std::vector<std::int64_t> taken(UndecidedArrivals& arrivals, std::uint64_t watermark) {
    const auto decided = arrivals.take_decided(watermark);
    return {decided.begin(), decided.end()};
}

}  // namespace

TEST_CASE("an arrival waits until the watermark decides all that came with it") {
    UndecidedArrivals arrivals(50);
    arrivals.add(10 * host_ms, 500);
    arrivals.add(20 * host_ms, 300);
    CHECK(taken(arrivals, 20).empty());
    CHECK(taken(arrivals, 350).empty());
    CHECK(taken(arrivals, 351) == std::vector<std::int64_t>{20 * host_ms});
    CHECK(taken(arrivals, UINT64_MAX) == std::vector<std::int64_t>{10 * host_ms});
    CHECK(taken(arrivals, UINT64_MAX).empty());
}

TEST_CASE("arrivals are followed at a bounded cost") {
    UndecidedArrivals arrivals(0);
    for (int i = 0; i < 100; ++i)
        arrivals.add(i * host_ms / 10, 1);  // ten in a millisecond
    CHECK(taken(arrivals, 2).size() == 10);
    for (int i = 1; i <= 10'000; ++i)
        arrivals.add(i * host_s, 1);
    CHECK(taken(arrivals, 2).size() == UndecidedArrivals::capacity);
    arrivals.add(20'000 * host_s, 1);
    arrivals.clear();
    CHECK(taken(arrivals, 2).empty());
}

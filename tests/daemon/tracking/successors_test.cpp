// Bare boards that restart with another source port: they stay the same voters.
#include <cstdint>
#include <vector>

#include "tests/daemon/tracking/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

using Ports = std::vector<std::uint16_t>;

TrackerOptions bare_options() {
    TrackerOptions options = usual_options();
    options.framing = net::Framing::bare;
    return options;
}

Ports ports_from(std::uint16_t first) {
    return {first, static_cast<std::uint16_t>(first + 1), static_cast<std::uint16_t>(first + 2),
            static_cast<std::uint16_t>(first + 3)};
}

/// The ports send 1 ms datagrams for `duration`, from this detector and host time on. Returns whether the
/// tracker says meanwhile that time went back.
DetectorTime::Back goes_back(Detector& d, const Ports& ports, std::uint64_t time, std::int64_t now,
                             std::uint64_t duration) {
    for (std::uint64_t t = 0; t < duration; t += ms) {
        for (const std::uint16_t port : ports)
            d.send(port, time + t, time + t + ms, 90, now + host(t + ms));
        d.tracker.watermark(now + host(t + ms), 0);
        if (d.tracker.time().went_back() != DetectorTime::Back::no) return d.tracker.time().went_back();
    }
    return DetectorTime::Back::no;
}

}  // namespace

TEST_CASE("bare boards that are reset and come back with other ports are a common reset") {
    Detector d(bare_options());
    REQUIRE(run(d, ports_from(0), start, start + 50 * ms));
    const std::uint64_t pause = GENERATE(100 * ms, 3'000 * ms);
    CHECK(goes_back(d, ports_from(10), 0, host(start + 50 * ms + pause), 1'500 * ms) ==
          DetectorTime::Back::common_reset);
}

TEST_CASE("bare boards that have restarted often are still known when they are reset") {
    Detector d(bare_options());
    std::uint64_t time = start;
    std::uint16_t port = 0;
    for (int restart = 0; restart < 6; ++restart) {
        REQUIRE(run(d, ports_from(port), time, time + 700 * ms));
        time += 700 * ms + (restart % 2 == 0 ? 1'000 * ms : 0);
        port = static_cast<std::uint16_t>(port + 10);
    }
    const TrackerStatus status = d.tracker.status(host(time));
    std::size_t ended = 0;
    for (const SourceStatus& source : status.sources)
        ended += source.state == SourceState::ended ? 1 : 0;
    CHECK(ended >= 16);  // the ports of the latest restarts need not be silent yet
    CHECK(goes_back(d, ports_from(port), 0, host(time), 1'500 * ms) == DetectorTime::Back::common_reset);
}

TEST_CASE("one sender takes the place of one silent board at most") {
    Detector d(bare_options());
    REQUIRE(run(d, ports_from(0), start, start + 50 * ms));
    CHECK(goes_back(d, {99}, 0, host(start + 1'000 * ms), 5'000 * ms) == DetectorTime::Back::no);
    // The boards go on.
    CHECK(run(d, ports_from(0), start + 6'000 * ms, start + 6'100 * ms));
    CHECK(d.tracker.time().went_back() == DetectorTime::Back::no);
    for (const std::uint16_t port : ports_from(0))
        CHECK(d.status(port, host(start + 6'100 * ms)).state == SourceState::active);
}

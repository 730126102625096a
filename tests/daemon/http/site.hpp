// A running server for the tests: full_status() with histograms.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "tests/daemon/http/fixture.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

struct Site {
    explicit Site(daemon::HttpOptions options = {}, daemon::HttpControl control = {})
        : server(std::move(options), small_ring(), std::move(control)), port(server.port()) {
        server.publish({full_status(), ring_histograms(1), std::chrono::steady_clock::now()});
        REQUIRE(shows_uptime(port, 101));
    }
    daemon::HttpServer server;
    std::uint16_t port;
};

}  // namespace petacq::test

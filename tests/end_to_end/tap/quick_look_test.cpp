// The live sinogram and the quick-look image of the real daemon, over HTTP.
#include <algorithm>
#include <cmath>

#include "tests/daemon/http/fixture.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

TEST_CASE("quick look: a simulated point source off centre appears at its place", "[e2e][http]") {
    const Site site(json{{"quick_look", {{"interval_s", 0.2}}}});
    Daemon daemon(site);
    const std::uint16_t port = daemon.http_port();
    CHECK(http_document(port, "/image").is_null());
    CHECK(http_document(port, "/sinogram").is_null());
    constexpr double x = 14;
    constexpr double y = -7;
    daemon.start("point");
    const json summary = simulate(site, {"--to", daemon.address(), "--duration-s", "0.5", "--sources", "4",
                                         "--point", "14,-7,3,0.6", "--crystals", "depth"});
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    const json stopped = daemon.stop();
    const auto prompts = stopped["prompts"].get<std::uint64_t>();
    REQUIRE(prompts > 1000);

    // All of the run is in it, since the machine was fast enough for so few.
    json image;
    REQUIRE(eventually([&] {
        image = http_document(port, "/image");
        return image.is_object() && image["running"] == false;
    }));
    CHECK(image["run"] == "point");
    CHECK(image["prompts"].get<std::uint64_t>() + image["dropped"].get<std::uint64_t>() >= prompts);
    const auto values = image["values"].get<std::vector<double>>();
    const auto size = image["size"].get<std::size_t>();
    REQUIRE(values.size() == size * size);
    const auto peak =
        static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
    const double centre = 0.5 * static_cast<double>(size - 1);
    const double step = image["step_mm"];
    const double found_x = (static_cast<double>(peak % size) - centre) * step;
    const std::size_t row = peak / size;
    const double found_y = (static_cast<double>(row) - centre) * step;
    CAPTURE(found_x, found_y, step);
    CHECK(std::hypot(found_x - x, found_y - y) < 2 * step);

    const json sinogram = http_document(port, "/sinogram");
    CHECK(sinogram["prompts"] == image["prompts"]);
    std::uint64_t sum = 0;
    for (const json& count : sinogram["counts"])
        sum += count.get<std::uint64_t>();
    CHECK(sum > prompts * 9 / 10);
    CHECK(sum <= prompts);
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("quick look: it can be switched off", "[e2e][http]") {
    const Site site(json{{"quick_look", {{"interval_s", 0}}}});
    Daemon daemon(site);
    daemon.start("r");
    simulate(site, short_stream(daemon, {"--duration-s", "0.1"}));
    daemon.stop();
    CHECK(http_document(daemon.http_port(), "/image").is_null());
    CHECK(http_document(daemon.http_port(), "/sinogram").is_null());
    CHECK(daemon.terminate() == 0);
}

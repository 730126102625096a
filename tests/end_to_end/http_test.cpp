// HTTP of the real daemon: it serves the data of the control socket, and hostile clients do not change the
// ledger of a run.
#include <atomic>
#include <set>
#include <thread>

#include "tests/daemon/http/exposition.hpp"
#include "tests/daemon/http/fixture.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace petacq::test;
using nlohmann::json;

TEST_CASE("HTTP serves the data of the control socket", "[e2e][http]") {
    const Site site;
    Daemon daemon(site);
    const std::uint16_t port = daemon.http_port();
    daemon.start("r");
    const json summary = simulate(site, short_stream(daemon));
    const auto sent = summary["total"]["expected"]["datagrams_received"].get<std::uint64_t>();
    REQUIRE(daemon.received(sent));
    const json answer = daemon.stop();

    // The daemon is idle: its counters no longer change.
    const auto ledger = [](const json& status) { return std::pair(status["ledger"], status["total"]); };
    const json status = daemon.status();
    REQUIRE(eventually([&] { return ledger(http_document(port, "/status")) == ledger(status); }));
    const json over_http = http_document(port, "/status");
    CHECK(over_http["ledger"]["singles"]["prompts"] == answer["prompts"]);
    std::set<std::string> keys_http;
    std::set<std::string> keys_socket;
    for (const auto& [key, value] : over_http.items())
        keys_http.insert(key);
    for (const auto& [key, value] : status.items())
        keys_socket.insert(key);
    CHECK(keys_http == keys_socket);

    const auto metrics = parse_exposition(http_get(port, "/metrics").body);
    CHECK(sample(metrics, "petacqd_datagrams_received_total") == static_cast<double>(sent));
    CHECK(sample(metrics, "petacqd_frames_received_total") == summary["total"]["frames"].get<double>());
    CHECK(sample(metrics, "petacqd_prompts_total") == status["total"]["singles"]["prompts"].get<double>());
    CHECK(metrics.at("petacqd_source_frames_total").samples.size() == 4);

    // The histograms are updated once a second.
    const auto converted = status["total"]["frames"]["accepted"].get<std::uint64_t>();
    CHECK(eventually([&] {
        const json singles = http_document(port, "/singles");
        std::uint64_t sum = 0;
        for (const json& count : singles["since_start"]["per_crystal"])
            sum += count.get<std::uint64_t>();
        return sum >= converted;
    }));
    CHECK(http_document(port, "/history")["time"].size() >= 1);
    CHECK(http_get(port, "/healthz").status == 200);
    CHECK(http_get(port, "/").status == 200);
    CHECK(http(port, "POST", "/control/start", {{"Content-Type", "application/json"}}, "{}").status == 403);
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("a run can be started and stopped over HTTP if that is allowed", "[e2e][http]") {
    const Site site(json{{"http", {{"allow_control", true}, {"control_token_file", "token"}}}});
    write_file(site.directory() / "token", "a-token-for-the-test\n");
    std::filesystem::permissions(site.directory() / "token", std::filesystem::perms::owner_read);
    Daemon daemon(site);
    const std::uint16_t port = daemon.http_port();
    const std::map<std::string, std::string> type{{"Content-Type", "application/json"},
                                                  {"Authorization", "Bearer a-token-for-the-test"}};
    const HttpAnswer started = http(port, "POST", "/control/start", type, R"({"run":"web"})");
    CHECK(started.status == 200);
    CHECK(json::parse(started.body)["run"] == "web");
    CHECK(http(port, "POST", "/control/start", type, "{}").status == 409);
    CHECK(daemon.status()["run"]["id"] == "web");
    const HttpAnswer stopped = http(port, "POST", "/control/stop", type, "{}");
    CHECK(stopped.status == 200);
    CHECK(json::parse(stopped.body)["ledger_closed"] == true);
    CHECK(http(port, "POST", "/control/stop", type, "{}").status == 409);
    CHECK(site.run_json("web")["state"] == "complete");
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("without an address there is no HTTP, and the error message names an address in use",
          "[e2e][http]") {
    const Site none(json{{"http", {{"listen", ""}}}});
    Daemon silent(none);
    CHECK(!contains(silent.log(), "http:"));
    const Site first;
    Daemon daemon(first);
    const std::string taken = "127.0.0.1:" + std::to_string(daemon.http_port());
    const Site second(json{{"http", {{"listen", taken}}}});
    const Outcome outcome = run_program(PETACQD_PROGRAM, {"--config", second.configuration()});
    CHECK(outcome.status == 74);
    CHECK(contains(outcome.err, "http.listen: cannot listen on " + taken));
}

TEST_CASE("hostile HTTP clients do not affect a run", "[e2e][http][hostile]") {
    const std::vector<std::string> stream{"--seed", "21", "--duration-s", "0.6"};
    const std::string undisturbed = undisturbed_payload(stream);
    const Site site;
    Daemon daemon(site);
    const std::uint16_t port = daemon.http_port();
    daemon.start("r");
    std::atomic<bool> over{false};
    std::atomic<int> connections{0};
    std::thread hostile([&] {
        // Clients that stay: one with half a request, one that never reads, one that sends byte by byte.
        HttpClient half(port);
        half.send("GET /sta");
        HttpClient deaf(port);
        for (int i = 0; i < 100; ++i)
            deaf.send("GET /singles HTTP/1.1\r\nHost: localhost\r\n\r\n");
        HttpClient dripping(port);
        dripping.send("GET /status HTTP/1.1\r\nX: ");
        const std::vector<std::string> garbage{
            "garbage\r\n\r\n",
            std::string(70'000, 'x'),
            "GET /" + std::string(20'000, 'y') + " HTTP/1.1\r\n",
            "POST /control/stop HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
            "application/json\r\nContent-Length: 2\r\n\r\n{}",
            "POST /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
            std::string("\0\xff\xfe\r\n\r\n", 7)};
        for (std::size_t i = 0; i < 10'000 && (!over || i < 2000); ++i) {
            try {
                HttpClient client(port);
                client.send(garbage[i % garbage.size()]);
                if (i % 7 == 0) client.half_close();
            } catch (const std::exception&) {
                continue;  // refused: too many connections
            }
            ++connections;
            dripping.send("x");
        }
    });
    const json summary = simulate(site, short_stream(daemon, stream));
    const auto sent = summary["total"]["expected"]["datagrams_received"].get<std::uint64_t>();
    CHECK(daemon.received(sent));
    over = true;
    hostile.join();
    CHECK(connections > 1000);
    CHECK(daemon.stop()["ledger_closed"] == true);
    const json ledger = site.run_json("r")["ledger"];
    INFO(ledger.dump(1));
    CHECK(ledger["closed"] == true);
    CHECK(ledger["datagrams"]["accepted"] == sent);
    CHECK(ledger["datagrams"]["lost"] == 0);
    CHECK(ledger["frames"]["received"] == summary["total"]["frames"]);
    CHECK(payload_of(site.run("r") / "coincidences.plm") == undisturbed);
    CHECK(eventually([&] { return http_get(port, "/status").status == 200; }));
    CHECK(daemon.terminate() == 0);
}

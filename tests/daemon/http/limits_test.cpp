// Misbehaving clients: each loses its own connection and disturbs no other client.
#include "tests/daemon/control/fixture.hpp"
#include "tests/daemon/http/site.hpp"

using namespace petacq::test;
using namespace petacq::daemon;
using nlohmann::json;

namespace {

using std::chrono::milliseconds;

const std::string get_status = "GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n";

}  // namespace

TEST_CASE("input that is no HTTP request is refused and the connection closed", "[http][hostile]") {
    const Site site;
    for (const std::string request :
         {"garbage\r\n\r\n", "GET\r\n\r\n", "GET /status\r\n\r\n", "GET /status HTTP/2.0\r\n\r\n",
          "GET /status HTTP/1.1\r\nHost localhost\r\n\r\n", "GET /a b HTTP/1.1\r\n\r\n",
          "\x16\x03\x01\x02\x01\x01", "G\x01T / HTTP/1.1\r\n\r\n",
          "POST /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
          "POST /status HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
        INFO(request);
        HttpClient client(site.port);
        REQUIRE(client.send(request));
        client.half_close();
        const HttpAnswer answer = client.answer();
        CHECK(answer.status == 400);
        CHECK(answer.headers.at("connection") == "close");
        CHECK(client.closed());
    }
    CHECK(http_get(site.port, "/status").status == 200);
}

TEST_CASE("a transfer coding that the server does not know is refused", "[http][hostile]") {
    const Site site;
    for (const std::string coding :
         {"xchunked", "gzip, chunked", "chunked\r\nTransfer-Encoding: chunked", ""}) {
        INFO(coding);
        HttpClient client(site.port);
        REQUIRE(client.send("POST /status HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: " + coding +
                            "\r\n\r\n0\r\n\r\n"));
        client.half_close();
        const HttpAnswer answer = client.answer();
        CHECK((answer.status == 501 || answer.status == 400));
        CHECK(answer.headers.at("connection") == "close");
        CHECK(client.closed());
    }
}

TEST_CASE("headers and bodies have a limit", "[http][hostile]") {
    HttpOptions options;
    options.max_request_bytes = 1000;
    const Site site(options);
    {
        HttpClient client(site.port);
        client.send("GET /status HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(100'000, 'x'));
        CHECK(client.answer().status == 431);
        CHECK(client.closed());
    }
    {
        HttpClient client(site.port);
        client.send("GET /" + std::string(100'000, 'x'));
        CHECK(client.answer().status == 431);
    }
    CHECK(http(site.port, "POST", "/status", {}, std::string(1000, 'x')).status == 405);
    CHECK(http(site.port, "POST", "/status", {}, std::string(1001, 'x')).status == 413);
    {
        HttpClient client(site.port);
        client.send("POST /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n");
        CHECK(client.answer().status == 413);
        CHECK(client.closed());
    }
    {
        HttpClient client(site.port);
        client.send("POST /status HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (int i = 0; i < 11 && client.send("64\r\n" + std::string(100, 'x') + "\r\n"); ++i) {
        }
        CHECK(client.answer().status == 413);
    }
    CHECK(http(site.port, "GET", "/status", {{"Content-Length", "3"}}, "").status ==
          0);  // cut off by the client's end
}

TEST_CASE("requests sent in advance are answered in order, even over a half-closed connection", "[http]") {
    const Site site;
    HttpClient client(site.port);
    std::string ahead;
    for (int i = 0; i < 200; ++i)
        ahead += i % 2 == 0 ? get_status : "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n";
    REQUIRE(client.send(ahead));
    client.half_close();
    for (int i = 0; i < 200; ++i)
        REQUIRE(client.answer().status == (i % 2 == 0 ? 200 : 404));
    CHECK(client.closed());
}

TEST_CASE("a connection serves many requests until the client asks to close it", "[http]") {
    const Site site;
    HttpClient client(site.port);
    for (int i = 0; i < 3; ++i) {
        REQUIRE(client.send(get_status));
        CHECK(client.answer().status == 200);
    }
    REQUIRE(client.send("GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    const HttpAnswer last = client.answer();
    CHECK(last.status == 200);
    CHECK(last.headers.at("connection") == "close");
    CHECK(client.closed());
}

TEST_CASE("a request may arrive in pieces, but not too slowly", "[http][hostile]") {
    HttpOptions options;
    options.request_timeout = milliseconds(400);
    options.idle_timeout = milliseconds(60'000);
    {
        const Site patient;
        HttpClient client(patient.port);
        for (const char c : get_status)
            REQUIRE(client.send({c}));
        CHECK(client.answer().status == 200);
    }
    const Site site(options);
    HttpClient dripping(site.port);
    const std::string header = "GET /status HTTP/1.1\r\nX: ";
    REQUIRE(dripping.send(header));
    // Occasional bytes do not extend its life.
    CHECK(eventually([&] {
        std::this_thread::sleep_for(milliseconds(20));
        return !dripping.send("x");
    }));
    HttpClient silent(site.port);
    CHECK(silent.closed());
    HttpClient body(site.port);
    REQUIRE(body.send("POST /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nx"));
    CHECK(body.closed());
    CHECK(eventually([&] { return site.server.statistics().timeouts >= 2; }));
}

TEST_CASE("an idle connection is closed", "[http]") {
    HttpOptions options;
    options.idle_timeout = milliseconds(300);
    const Site site(options);
    HttpClient client(site.port);
    REQUIRE(client.send(get_status));
    CHECK(client.answer().status == 200);
    CHECK(client.closed());
}

TEST_CASE("a client that never reads is disconnected, others are served meanwhile", "[http][hostile]") {
    HttpOptions options;
    options.request_timeout = milliseconds(500);
    options.chart_library = std::string(4'000'000, 'x');
    const Site site(options);
    HttpClient deaf(site.port);
    std::string ahead;
    for (int i = 0; i < 50; ++i)
        ahead += "GET /chart.js HTTP/1.1\r\nHost: localhost\r\n\r\n";
    REQUIRE(deaf.send(ahead));
    CHECK(http_get(site.port, "/status").status == 200);
    CHECK(eventually([&] { return site.server.statistics().timeouts >= 1; }));
    CHECK(http_get(site.port, "/status").status == 200);
}

TEST_CASE("connections beyond the limit are refused with 503", "[http][hostile]") {
    HttpOptions options;
    options.max_connections = 4;
    const Site site(options);
    CHECK(eventually([&] { return site.server.statistics().connections == 0; }));
    std::vector<std::unique_ptr<HttpClient>> clients;
    for (int i = 0; i < 4; ++i) {
        clients.push_back(std::make_unique<HttpClient>(site.port));
        REQUIRE(clients.back()->send(get_status));
        REQUIRE(clients.back()->answer().status == 200);
    }
    HttpClient one_more(site.port);
    const HttpAnswer answer = one_more.answer();
    CHECK(answer.status == 503);
    CHECK(json::parse(answer.body)["error"] == "too many connections");
    CHECK(one_more.closed());
    CHECK(site.server.statistics().refused == 1);
    clients.pop_back();
    CHECK(eventually([&] { return http_get(site.port, "/status").status == 200; }));
}

TEST_CASE("the server survives ten thousand connections", "[http][hostile]") {
    HttpOptions options;
    options.max_connections = 16;
    const Site site(options);
    std::vector<std::unique_ptr<HttpClient>> kept;
    for (int i = 0; i < 10'000; ++i) {
        auto client = std::make_unique<HttpClient>(site.port);
        if (i % 3 == 0) client->send("GET /");
        if (i % 500 == 0) kept.push_back(std::move(client));
    }
    kept.clear();
    CHECK(eventually([&] { return http_get(site.port, "/status").status == 200; }));
    CHECK(eventually([&] { return site.server.statistics().connections == 0; }));
    const HttpStatistics statistics = site.server.statistics();
    CHECK(statistics.accepted + statistics.refused >= 10'000);
}

TEST_CASE("closing the server disconnects all clients", "[http]") {
    Site site;
    HttpClient idle(site.port);
    REQUIRE(idle.send(get_status));
    CHECK(idle.answer().status == 200);
    HttpClient half(site.port);
    REQUIRE(half.send("GET /sta"));
    site.server.close();
    CHECK(idle.closed());
    CHECK(half.closed());
    site.server.close();
}

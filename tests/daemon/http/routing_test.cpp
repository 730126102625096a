// Paths, access checks and headers.
#include "tests/daemon/http/site.hpp"

using namespace petacq::test;
using namespace petacq::daemon;
using nlohmann::json;

TEST_CASE("every document is at its documented path, and none may be cached or sniffed", "[http]") {
    const Site site;
    for (const char* path : {"/status", "/healthz", "/metrics", "/singles", "/randoms", "/history",
                             "/history/day", "/log", "/control"}) {
        INFO(path);
        const HttpAnswer answer = http_get(site.port, path);
        CHECK(answer.status == 200);
        CHECK(answer.headers.at("cache-control") == "no-store");
        CHECK(answer.headers.at("x-content-type-options") == "nosniff");
        CHECK(answer.headers.count("date") == 1);
        if (std::string(path) == "/metrics") {
            CHECK(answer.headers.at("content-type") == "text/plain; version=0.0.4; charset=utf-8");
        } else {
            CHECK(answer.headers.at("content-type") == "application/json");
            CHECK(json::accept(answer.body));
        }
    }
    CHECK(json::parse(http_get(site.port, "/status").body) == full_status());
}

TEST_CASE("the page loads nothing from elsewhere", "[http]") {
    const Site site;
    const HttpAnswer page = http_get(site.port, "/");
    CHECK(page.status == 200);
    CHECK(page.headers.at("content-type") == "text/html; charset=utf-8");
    const std::string policy = page.headers.at("content-security-policy");
    CHECK(policy.find("default-src 'none'") != std::string::npos);
    CHECK(policy.find("script-src 'self';") != std::string::npos);
    CHECK(policy.find("unsafe") == std::string::npos);
    CHECK(policy.find("frame-ancestors 'none'") != std::string::npos);
    CHECK(page.headers.at("x-frame-options") == "DENY");
    CHECK(page.body.find("http://") == std::string::npos);
    CHECK(page.body.find("https://") == std::string::npos);
    for (const auto& [path, type] :
         std::map<std::string, std::string>{{"/style.css", "text/css; charset=utf-8"},
                                            {"/page.js", "text/javascript; charset=utf-8"},
                                            {"/charts.js", "text/javascript; charset=utf-8"},
                                            {"/icon.svg", "image/svg+xml"}}) {
        INFO(path);
        CHECK(page.body.find('"' + path + '"') != std::string::npos);
        const HttpAnswer answer = http_get(site.port, path);
        CHECK(answer.status == 200);
        CHECK(answer.headers.at("content-type") == type);
        CHECK(answer.headers.at("x-content-type-options") == "nosniff");
        CHECK(answer.body.size() > 100);
    }
}

TEST_CASE("the chart library is served if there is one", "[http]") {
    HttpOptions options;
    options.chart_library = "const Chart = 1;";
    const Site with(options);
    CHECK(http_get(with.port, "/chart.js").body == "const Chart = 1;");
    const Site without;
    CHECK(http_get(without.port, "/chart.js").status == 404);
    CHECK(read_chart_library("/does/not/exist").empty());
}

TEST_CASE("HEAD is GET without the body", "[http]") {
    const Site site;
    HttpClient client(site.port);
    REQUIRE(client.send("HEAD /status HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    const HttpAnswer head = client.answer(true);
    CHECK(head.status == 200);
    REQUIRE(client.send("GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    const HttpAnswer get = client.answer();
    CHECK(get.status == 200);
    CHECK(head.headers.at("content-length") == std::to_string(get.body.size()));
}

TEST_CASE("unknown paths and methods that are not allowed", "[http]") {
    const Site site;
    for (const char* path : {"/nothing", "/status/", "/Status", "/../etc/passwd", "/%2e%2e/etc/passwd",
                             "/page/page.js", "//status"})
        CHECK(http_get(site.port, path).status == 404);
    CHECK(http_get(site.port, "/status?x=1").status == 200);
    CHECK(http_get(site.port, "http://localhost/status").status == 200);
    for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"}) {
        INFO(method);
        const HttpAnswer answer = http(site.port, method, "/status");
        CHECK(answer.status == 405);
        CHECK(answer.headers.at("allow") == "GET, HEAD");
    }
    CHECK(http(site.port, "BREW", "/status").status == 405);
}

TEST_CASE("a request for a foreign host name is refused", "[http]") {
    HttpOptions options;
    options.host_names = {"scanner.example"};
    const Site site(options);
    const auto status = [&](const std::string& host) {
        return http(site.port, "GET", "/status", {{"Host", host}}).status;
    };
    for (const char* host : {"localhost", "LOCALHOST:9680", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:9680",
                             "10.1.2.3:80", "scanner.example", "Scanner.Example:9680"}) {
        INFO(host);
        CHECK(status(host) == 200);
    }
    for (const char* host :
         {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "scanner.example.evil", "",
          ":9680", "[::1", "[x]", "localhost:port", "localhost:123456", "1.2.3"}) {
        INFO(host);
        CHECK(status(host) == 403);
    }
    HttpClient none(site.port);
    REQUIRE(none.send("GET /status HTTP/1.1\r\n\r\n"));
    CHECK(none.answer().status == 400);
    HttpClient two(site.port);
    REQUIRE(two.send("GET /status HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"));
    CHECK(two.answer().status == 400);
    HttpClient old(site.port);
    REQUIRE(old.send("GET /status HTTP/1.0\r\n\r\n"));
    CHECK(old.answer().status == 200);
    CHECK(old.closed());
}

TEST_CASE("no run can be started unless control is switched on", "[http][control]") {
    const Site site;
    for (const char* path : {"/control/start", "/control/stop", "/control/mark"}) {
        CHECK(http(site.port, "POST", path, {{"Content-Type", "application/json"}}, "{}").status == 403);
        CHECK(http_get(site.port, path).status == 403);
    }
}

TEST_CASE("start and stop, where allowed, for requests from this site", "[http][control]") {
    struct Calls {
        std::vector<StartRequest> starts;
        std::vector<StopRequest> stops;
        std::vector<std::string> marks;
    };
    auto calls = std::make_shared<Calls>();
    HttpControl control;
    control.start = [calls](StartRequest request, const Reply& reply) {
        calls->starts.push_back(request);
        if (request.run == "taken")
            return reply.error(rpc_refused, "run taken is in progress; stop it first");
        reply.result({{"run", request.run.value_or("named")}});
    };
    control.stop = [calls](StopRequest request, const Reply& reply) {
        calls->stops.push_back(std::move(request));
        reply.result({{"ledger_closed", true}});
    };
    control.mark = [calls](std::string text, const Reply& reply) {
        calls->marks.push_back(std::move(text));
        reply.result({{"run", "a"}});
    };
    HttpOptions options;
    options.control_token = "a token for the test";
    Site site(options, control);
    const std::string token = "Bearer a token for the test";
    const std::map<std::string, std::string> json_type{{"Content-Type", "application/json"},
                                                       {"Authorization", token}};

    HttpAnswer answer =
        http(site.port, "POST", "/control/start", json_type, R"({"run":"a","duration_s":2.5,"note":"n"})");
    CHECK(answer.status == 200);
    CHECK(json::parse(answer.body) == json{{"run", "a"}});
    answer = http(site.port, "POST", "/control/start",
                  {{"Content-Type", "Application/JSON; charset=utf-8"},
                   {"authorization", "bearer a token for the test"},
                   {"Origin", "http://localhost"},
                   {"Sec-Fetch-Site", "same-origin"}},
                  "{}");
    CHECK(json::parse(answer.body) == json{{"run", "named"}});
    answer = http(site.port, "POST", "/control/start", json_type, R"({"run":"taken"})");
    CHECK(answer.status == 409);
    CHECK(json::parse(answer.body)["error"] == "run taken is in progress; stop it first");
    answer = http(site.port, "POST", "/control/stop", json_type, "");
    CHECK(answer.status == 200);
    CHECK(json::parse(answer.body)["ledger_closed"] == true);
    CHECK(http(site.port, "POST", "/control/stop", json_type, R"({"run":"a","stop_ticks":7})").status == 200);
    CHECK(http(site.port, "POST", "/control/stop", json_type, R"({"run":7})").status == 400);

    CHECK(http(site.port, "POST", "/control/mark", json_type, R"({"text":"FDG injected"})").status == 200);
    CHECK(calls->marks == std::vector<std::string>{"FDG injected"});
    for (const std::string& body :
         {std::string("{}"), std::string(R"({"text":"two\nlines"})"), std::string(R"({"text":""})"),
          R"({"text":")" + std::string(257, 'x') + R"("})"}) {
        INFO(body);
        answer = http(site.port, "POST", "/control/mark", json_type, body);
        CHECK(answer.status == 400);
        CHECK(answer.body.find("text: expected 1 to 256 bytes on one line") != std::string::npos);
    }
    CHECK(calls->marks.size() == 1);

    // A form on a foreign page can send these.
    CHECK(http(site.port, "POST", "/control/stop", {{"Authorization", token}}, "").status == 415);
    CHECK(http(site.port, "POST", "/control/stop", {{"Content-Type", "text/plain"}, {"Authorization", token}},
               "{}")
              .status == 415);
    CHECK(http(site.port, "POST", "/control/stop",
               {{"Content-Type", "application/x-www-form-urlencoded"}, {"Authorization", token}}, "a=b")
              .status == 415);
    for (const char* origin : {"http://evil.example", "null", "http://localhost:1", "localhost"}) {
        INFO(origin);
        CHECK(http(site.port, "POST", "/control/stop",
                   {{"Content-Type", "application/json"}, {"Authorization", token}, {"Origin", origin}}, "{}")
                  .status == 403);
    }
    CHECK(http(site.port, "POST", "/control/stop",
               {{"Content-Type", "application/json"},
                {"Authorization", token},
                {"Origin", "http://localhost"},
                {"origin", "http://evil.example"}},
               "{}")
              .status == 400);
    CHECK(http(site.port, "POST", "/control/stop",
               {{"Content-Type", "application/json"},
                {"Authorization", token},
                {"Sec-Fetch-Site", "cross-site"}},
               "{}")
              .status == 403);
    CHECK(http(site.port, "POST", "/control/stop",
               {{"Content-Type", "application/json"}, {"Authorization", token}, {"Host", "evil.example"}},
               "{}")
              .status == 403);
    CHECK(http(site.port, "OPTIONS", "/control/stop",
               {{"Origin", "http://evil.example"}, {"Authorization", token}})
              .status == 405);
    CHECK(http_get(site.port, "/control/stop").status == 405);
    for (const char* body : {"x", "[]", R"({"runn":"a"})", R"({"run":1})", R"({"duration_s":0})",
                             R"({"duration_s":1e999})", R"({"run":"a"} x)"}) {
        INFO(body);
        CHECK(http(site.port, "POST", "/control/start", json_type, body).status == 400);
    }
    // Without the token, with another one, or with several headers.
    for (const char* wrong :
         {"", "Bearer", "Bearer ", "Bearer a token for the tesT", "Bearer a token for the test2",
          "Bearer a token for the tes", "Basic a token for the test", "a token for the test"}) {
        INFO(wrong);
        CHECK(http(site.port, "POST", "/control/stop",
                   {{"Content-Type", "application/json"}, {"Authorization", wrong}}, "{}")
                  .status == 401);
    }
    CHECK(http(site.port, "POST", "/control/stop", {{"Content-Type", "application/json"}}, "{}").status ==
          401);
    HttpClient twice(site.port);
    REQUIRE(
        twice.send("POST /control/stop HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                   "Authorization: " +
                   token + "\r\nAuthorization: " + token + "\r\nContent-Length: 0\r\n\r\n"));
    CHECK(twice.answer().status == 401);
    CHECK(json::parse(http_get(site.port, "/control").body) == json{{"allowed", true}});
    site.server.close();
    CHECK(calls->starts.size() == 3);
    CHECK(calls->starts[0].run == "a");
    CHECK(calls->starts[0].duration_s == 2.5);
    CHECK(calls->starts[0].note == "n");
    REQUIRE(calls->stops.size() == 2);
    CHECK_FALSE(calls->stops[0].run);
    CHECK(calls->stops[1].run == "a");
    CHECK(calls->stops[1].stop_ticks == 7);
}

TEST_CASE("an answer after the server was closed is discarded", "[http][control]") {
    auto kept = std::make_shared<std::vector<Reply>>();
    HttpControl control;
    control.start = [](const StartRequest&, const Reply&) {};
    control.stop = [kept](const StopRequest&, const Reply& reply) { kept->push_back(reply); };
    {
        HttpOptions options;
        options.control_token = "a token for the test";
        const Site site(options, control);
        HttpClient client(site.port);
        REQUIRE(
            client.send("POST /control/stop HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        "Authorization: Bearer a token for the test\r\nContent-Length: 0\r\n\r\nGET /status "
                        "HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        CHECK(shows_uptime(site.port, 101));  // others are answered meanwhile
    }
    REQUIRE(kept->size() == 1);
    kept->front().result({{"late", true}});
}

TEST_CASE("an address that the server cannot listen on is named", "[http]") {
    const Site site;
    HttpOptions options;
    options.listen = "127.0.0.1:" + std::to_string(site.port);
    std::string said;
    try {
        const HttpServer second(options, small_ring());
    } catch (const std::runtime_error& error) {
        said = error.what();
    }
    CHECK(said.find("http.listen: cannot listen on " + options.listen) == 0);
}

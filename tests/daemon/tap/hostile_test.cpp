// Requests that the tap refuses.
#include <string>
#include <vector>

#include "daemon/tap/request.hpp"
#include "daemon/tap/server.hpp"
#include "tests/daemon/tap/tap_client.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

TEST_CASE("tap: each wrong request gets an answer that says what was expected", "[tap][hostile]") {
    const TemporaryDirectory directory;
    const auto path = directory / "tap.sock";
    Tap tap;
    TapServer server(tap, {"s", 1, 1, true, false}, {path, 0660, {}, 2});
    const std::vector<std::pair<std::string, std::string>> requests = {
        {"", "expected a line such as"},
        {"nonsense", "expected a line such as"},
        {"[]", "expected a line such as"},
        {"null", "expected a line such as"},
        {std::string(2000, '['), "expected a line such as"},
        {std::string(5000, 'x'), "expected a line of at most 4096 bytes"},
        {"\xff\xfe", "expected a line such as"},
        {"{}", R"(kind: expected "coincidences", "singles" or "triples", found nothing)"},
        {R"({"kind": "tags"})", R"(kind: expected "coincidences", "singles" or "triples", found "tags")"},
        {R"({"kind": 7})", R"(kind: expected "coincidences", "singles" or "triples", found 7)"},
        {R"({"kind": "singles"})", "listmode.write_singles is false"},
        {R"({"kind": "triples"})", "no triples, since there is no section gammas"},
        {R"({"kind": "coincidences", "prescale": 0})",
         "prescale: expected a whole number from 1 to 4294967296, found 0"},
        {R"({"kind": "coincidences", "prescale": -1})", "found -1"},
        {R"({"kind": "coincidences", "prescale": 1.5})", "found 1.5"},
        {R"({"kind": "coincidences", "prescale": "2"})", "found \"2\""},
        {R"({"kind": "coincidences", "prescale": true})", "found true"},
        {R"({"kind": "coincidences", "prescale": 4294967297})", "found 4294967297"},
        {R"({"kind": "coincidences", "prescale": 1e300})", "found 1e+300"},
        {R"({"kind": "coincidences", "every": 3})", "expected the keys kind and prescale, found \"every\""}};
    for (const auto& [request, reason] : requests) {
        INFO(request);
        TapClientForTest client(path);
        client.send(request + '\n');
        CHECK_THAT(client.answer().at("error").get<std::string>(), contains(reason));
        CHECK(client.at_end());
    }
    CHECK(tap.statistics().refused == requests.size());
    CHECK(tap.statistics().clients == 0);
    CHECK(tap.statistics().accepted == 0);
    CHECK_THROWS_WITH(TapRequest::parse(R"({"kind": "triples"})", {"s", 1, 1, false, true}),
                      contains("no triples, since listmode.write_coincidences is false"));
}

TEST_CASE("tap: a client too many is refused, and gets the place of one that leaves", "[tap][hostile]") {
    const TemporaryDirectory directory;
    const auto path = directory / "tap.sock";
    Tap tap;
    TapServer server(tap, {"s", 1, 1, true, false}, {path, 0660, {}, 2});
    TapClientForTest first(path);
    REQUIRE(first.ask({{"kind", "coincidences"}}).contains("format"));
    {
        TapClientForTest second(path);
        REQUIRE(second.ask({{"kind", "coincidences"}}).contains("format"));
        TapClientForTest third(path);
        CHECK(third.answer().at("error") == "too many clients, at most 2");
        CHECK(third.at_end());
    }
    CHECK(eventually([&] {
        TapClientForTest next(path);
        return next.ask({{"kind", "coincidences"}}).contains("format");
    }));
}

TEST_CASE("tap: what a client sends after its request changes nothing", "[tap][hostile]") {
    const TemporaryDirectory directory;
    const auto path = directory / "tap.sock";
    Tap tap;
    TapServer server(tap, {"s", 1, 1, true, false}, {path, 0660, {}, 2});
    TapClientForTest client(path);
    client.send("{\"kind\": \"coincidences\"}\n{\"kind\": \"singles\"}\n" + std::string(100'000, 'x'));
    CHECK(client.answer().contains("format"));
    tap.begin_run("r");
    CHECK(client.next()->payload == "r");
}

TEST_CASE("tap: a client that says nothing or leaves at once harms nobody", "[tap][hostile]") {
    const TemporaryDirectory directory;
    const auto path = directory / "tap.sock";
    Tap tap;
    {
        TapServer server(tap, {"s", 1, 1, true, false}, {path, 0660, {}, 2});
        { const TapClientForTest gone(path); }
        const TapClientForTest silent(path);
        CHECK(eventually([&] {
            TapClientForTest client(path);
            client.send("{\"kind\": \"coincidences\"}\n");
            return client.answer().contains("format");
        }));
    }
    CHECK(tap.statistics().clients == 0);
}
